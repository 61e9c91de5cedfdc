//! Findings as JSON lines, kept in memory and appended to the file that `WARPWRIGHT_EMULATOR_REPORT` names.

use super::config::REPORT_VARIABLE;
use crate::Fault;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The checker that found it.
    pub checker: String,
    /// What is wrong.
    pub message: String,
    /// Further members of the JSON object, values in JSON.
    pub members: Vec<(String, String)>,
}

fn findings() -> MutexGuard<'static, Vec<Finding>> {
    static FINDINGS: Mutex<Vec<Finding>> = Mutex::new(Vec::new());
    FINDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the findings so far.
pub fn take() -> Vec<Finding> {
    std::mem::take(&mut *findings())
}

/// Notes a finding.
pub fn find(checker: &str, message: impl Into<String>) {
    find_with(checker, message, Vec::new());
}

/// Notes a finding with further members.
pub fn find_with(checker: &str, message: impl Into<String>, members: Vec<(String, String)>) {
    let finding = Finding { checker: checker.to_string(), message: message.into(), members };
    let mut object = vec![
        ("type".to_string(), quote("finding")),
        ("checker".to_string(), quote(checker)),
        ("message".to_string(), quote(&finding.message)),
    ];
    object.extend(finding.members.iter().cloned());
    append(&object);
    findings().push(finding);
}

/// Notes what a kernel or a copy did wrong.
pub fn fault(fault: &Fault) {
    let list = |values: [u32; 3]| format!("[{},{},{}]", values[0], values[1], values[2]);
    let mut members = vec![("kind".to_string(), quote(&format!("{:?}", fault.kind)))];
    if !fault.kernel.is_empty() {
        members.push(("kernel".into(), quote(&fault.kernel)));
        members.push(("block".into(), list(fault.block)));
        members.push(("thread".into(), list(fault.thread)));
        members.push(("line".into(), fault.line.to_string()));
        members.push(("instruction".into(), quote(&fault.instruction)));
    }
    if let Some(address) = fault.address {
        members.push(("address".into(), quote(&format!("{address:#x}"))));
    }
    if let Some(source) = &fault.source {
        members.push(("source".into(), quote(source)));
    }
    let checker = if fault.kernel.is_empty() { "copy" } else { "kernel" };
    find_with(checker, fault.to_string(), members);
}

/// Appends an object that is no finding, members in JSON.
pub fn append(members: &[(String, String)]) {
    let Some(path) = std::env::var_os(REPORT_VARIABLE).filter(|path| !path.is_empty()) else { return };
    let body: Vec<String> = members.iter().map(|(name, value)| format!("{}:{value}", quote(name))).collect();
    let line = format!("{{{}}}\n", body.join(","));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    // One write a line, so that processes that share the file do not mix.
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("{REPORT_VARIABLE}: {}: {error}", path.to_string_lossy());
    }
}

/// A text as JSON.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if (control as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_are_quoted() {
        assert_eq!(super::quote("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }
}
