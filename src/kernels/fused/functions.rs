//! Bodies of the scalar functions, cut out of their PTX and put where they are applied.

use super::Step;
use crate::dtype::DType;
use crate::kernels::registry::MODULES;
use crate::{Error, Result};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::OnceLock;

struct Body {
    /// Names of the parameters, in order.
    parameters: Vec<String>,
    /// The lines between the braces.
    lines: Vec<String>,
}

struct Bodies {
    text: String,
    by_name: HashMap<String, Body>,
}

/// The functions of that suffix: those of floats and those of whole numbers stand in modules of their own.
fn bodies(suffix: &str) -> Result<&'static Bodies> {
    static FLOATS: OnceLock<Bodies> = OnceLock::new();
    static WHOLES: OnceLock<Bodies> = OnceLock::new();
    let (family, known) =
        if suffix.starts_with('f') { ("functions", &FLOATS) } else { ("functions_whole", &WHOLES) };
    if let Some(bodies) = known.get() {
        return Ok(bodies);
    }
    let module = MODULES.iter().find(|module| module.family == family);
    let text = module.ok_or_else(|| Error::Internal(format!("no module '{family}'")))?.functions()?;
    let by_name = text.split("\n.func ").skip(1).filter_map(body).collect();
    Ok(known.get_or_init(|| Bodies { text, by_name }))
}

/// Name and body of ` (.param .b32 func_retval0) name(\n.param .b32 p,..\n)\n{\n..\n}\n`; none of a mere declaration.
fn body(text: &str) -> Option<(String, Body)> {
    let (head, rest) = text.split_once("\n{\n")?;
    let (_, head) = head.split_once("func_retval0)")?;
    let (name, list) = head.split_once('(')?;
    let words = list.split_whitespace().filter(|word| !word.starts_with('.') && *word != ")");
    let parameters = words.map(|word| word.trim_end_matches([',', ')']).to_string()).collect();
    let lines = rest[..rest.find("\n}")?].lines().map(|line| line.trim().to_string()).collect();
    Some((name.trim().to_string(), Body { parameters, lines }))
}

fn find(function: &str, suffix: &str) -> Result<&'static Body> {
    let name = format!("function_{function}_{suffix}");
    bodies(suffix)?.by_name.get(&name).ok_or_else(|| Error::Internal(format!("no device function '{name}'")))
}

/// The module that the bodies come from, with what they refer to.
pub fn module_text(suffix: &str) -> Result<&'static str> {
    Ok(&bodies(suffix)?.text)
}

/// How many numbers a device function takes; parameters that it ignores count.
pub fn parameters_of(function: &str, suffix: &str) -> Result<usize> {
    Ok(find(function, suffix)?.parameters.len())
}

/// Lines of the functions that steps apply, once each time.
pub fn length(steps: &[Step], dtype: DType) -> Result<usize> {
    let suffix = dtype.promoted().suffix();
    let lines = |step: &Step| match step {
        Step::Apply(function, _) => Ok(find(function, suffix)?.lines.len()),
        _ => Ok(0),
    };
    steps.iter().map(lines).sum()
}

/// The type of registers that hold numbers of that suffix, and 0 in it.
pub fn register(suffix: &str) -> (&'static str, &'static str) {
    match suffix {
        "f32" => ("f32", "0f00000000"),
        "f64" => ("f64", "0d0000000000000000"),
        "i32" | "u32" => ("b32", "0"),
        _ => ("b64", "0"),
    }
}

/// Appends `out = function(arguments)` as a block of its own. `serial` is a number that no other block of the kernel has.
///
/// Products and sums get `.rn`: the compiler has contracted what it wanted to, and the assembler shall not join the end of one
/// function to the start of the next.
pub fn inline(
    text: &mut String,
    function: &str,
    suffix: &str,
    out: &str,
    arguments: &[String],
    serial: usize,
) -> Result<()> {
    let body = find(function, suffix)?;
    let (kind, zero) = register(suffix);
    text.push_str("{\n");
    for (index, line) in body.lines.iter().enumerate() {
        if line == "ret;" {
            // The last line falls through.
            if index + 1 < body.lines.len() {
                let _ = writeln!(text, "bra.uni DONE{serial};");
            }
        } else if let Some((register, parameter)) = loaded(line) {
            let at = body.parameters.iter().position(|name| name == parameter);
            let argument = at.and_then(|at| arguments.get(at)).map_or(zero, String::as_str);
            let _ = writeln!(text, "mov.{kind} {register}, {argument};");
        } else if let Some(register) = stored(line) {
            let _ = writeln!(text, "mov.{kind} {out}, {register};");
        } else {
            let _ = writeln!(text, "{}", rounded(line).replace("$L__", &format!("$L{serial}__")));
        }
    }
    let _ = writeln!(text, "DONE{serial}:\n}}");
    Ok(())
}

/// `ld.param.f32 %f1, [function_x_f32_param_0];` as register and parameter.
fn loaded(line: &str) -> Option<(&str, &str)> {
    let (register, place) = line.strip_prefix("ld.param.")?.split_once(", [")?;
    let parameter = place.strip_suffix("];").filter(|place| place.starts_with("function_"))?;
    Some((register.split_whitespace().last()?, parameter))
}

/// `st.param.f32 [func_retval0+0], %f2;` as register.
fn stored(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("st.param.")?;
    rest.split_once("[func_retval0+0], ")?.1.strip_suffix(';')
}

fn rounded(line: &str) -> String {
    for operation in ["mul", "add", "sub"] {
        for suffix in ["f32", "f64"] {
            if let Some(rest) =
                line.strip_prefix(operation).and_then(|rest| rest.strip_prefix('.')?.strip_prefix(suffix))
                && rest.starts_with(char::is_whitespace)
            {
                return format!("{operation}.rn.{suffix}{rest}");
            }
        }
    }
    line.to_string()
}
