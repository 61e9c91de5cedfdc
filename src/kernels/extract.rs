//! Cuts one kernel out of a module's PTX, with what it refers to, so that the driver compiles only what is launched. The build
//! script does so for all embedded kernels.

use std::collections::{HashMap, HashSet};

/// A module's PTX by the names that it declares.
pub struct Index<'a> {
    items: Vec<&'a str>,
    by_name: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Index<'a> {
    /// Finds what the text declares.
    pub fn new(ptx: &'a str) -> Index<'a> {
        let items = items(ptx);
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(name) = name_of(item) {
                by_name.entry(name).or_default().push(index);
            }
        }
        Index { items, by_name }
    }

    /// The text of a module that holds only `entry` and the declarations and functions it needs.
    pub fn extract(&self, entry: &str) -> Option<String> {
        let start = *self.by_name.get(entry)?.first()?;
        let headers = (0..self.items.len()).filter(|index| is_header(self.items[*index]));
        let mut wanted: HashSet<usize> = headers.chain([start]).collect();
        let mut open = vec![start];
        while let Some(index) = open.pop() {
            for word in identifiers(self.items[index]) {
                for &other in self.by_name.get(word).into_iter().flatten() {
                    if wanted.insert(other) {
                        open.push(other);
                    }
                }
            }
        }
        let kept = self.items.iter().enumerate().filter(|(index, _)| wanted.contains(index));
        Some(kept.map(|(_, item)| *item).collect::<Vec<_>>().join("\n"))
    }
}

fn is_header(item: &str) -> bool {
    [".version", ".target", ".address_size"].iter().any(|word| item.starts_with(word))
}

/// Top-level directives, declarations and functions, without comments between them.
fn items(ptx: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut rest = ptx;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, tail)| tail);
            continue;
        }
        if rest.is_empty() {
            return items;
        }
        let end = if is_header(rest) { rest.find('\n').unwrap_or(rest.len()) } else { end_of(rest) };
        let (item, tail) = rest.split_at(end);
        items.push(item);
        rest = tail;
    }
}

/// End of a declaration (its semicolon) or of a function (its closing brace).
fn end_of(text: &str) -> usize {
    let function = text.starts_with(".visible") || text.starts_with(".func") || text.starts_with(".weak");
    let mut depth = 0usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && function {
                    return index + 1;
                }
            }
            b';' if depth == 0 => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Name that an item declares: the last identifier before its parameter list, array bounds or value.
fn name_of(item: &str) -> Option<&str> {
    if is_header(item) {
        return None;
    }
    if !item.starts_with(".func") && !item.contains(".entry") {
        return identifiers(&item[..item.find(['{', '=', ';', '[']).unwrap_or(item.len())]).last();
    }
    let head = &item[..item.find(['{', ';']).unwrap_or(item.len())];
    // A function's return value stands in brackets before its name.
    let after = head.find(".func").map_or(head, |at| head[at + 5..].trim_start());
    let after = if after.starts_with('(') { after.split_once(')')?.1 } else { after };
    identifiers(after.split_once('(').map_or(after, |(name, _)| name)).last()
}

/// Words that can be names; directives and instruction parts among them do no harm.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// head\n.version 7.0\n.target sm_75\n.address_size 64\n\n.extern .shared .align 16 .b8 tile[];\n\
        .global .align 4 .b8 table[8] = {1, 2};\n.func (.param .align 4 .b8 r[16]) helper(\n.param .b64 p\n)\n;\n\
        .visible .entry one(\n.param .u64 one_0\n)\n{\n{ mov.u64 %rd1, table; }\ncall (r), helper, (p);\n}\n\
        .visible .entry two()\n{\nmov.u32 %r1, tile;\nret;\n}\n\
        .func (.param .align 4 .b8 r[16]) helper(\n.param .b64 p\n)\n{\nret;\n}\n";

    #[test]
    fn keeps_what_is_referred_to() {
        let index = Index::new(TEXT);
        let one = index.extract("one").unwrap();
        assert!(one.starts_with(".version 7.0\n.target sm_75\n.address_size 64\n"));
        assert!(one.contains("table[8]") && one.matches("helper(").count() == 2);
        assert!(!one.contains("two") && !one.contains("tile"));
        let two = index.extract("two").unwrap();
        assert!(two.contains("tile[]") && !two.contains("helper") && !two.contains("table"));
        assert!(index.extract("three").is_none());
    }
}
