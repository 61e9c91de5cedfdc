//! PTX text to tokens.

/// A token; words keep their dots (`ld.global.v4.f32`, `%tid.x`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    Word(&'a str),
    Int(i128),
    F32(u32),
    F64(u64),
    Text(&'a str),
    Punct(u8),
    End,
}

/// A token and the line that it stands on.
#[derive(Clone, Copy, Debug)]
pub struct Lexeme<'a> {
    pub token: Token<'a>,
    pub line: u32,
}

/// What a line of text is wrong with.
#[derive(Debug)]
pub struct Problem {
    pub line: u32,
    pub message: String,
    pub unknown: bool,
}

impl Problem {
    pub fn syntax(line: u32, message: impl Into<String>) -> Problem {
        Problem { line, message: message.into(), unknown: false }
    }

    pub fn unknown(line: u32, message: impl Into<String>) -> Problem {
        Problem { line, message: message.into(), unknown: true }
    }
}

fn starts_word(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

fn in_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.' | b'%')
}

/// Splits text into tokens; the last one is `End`.
pub fn lex(text: &str) -> Result<Vec<Lexeme<'_>>, Problem> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let c = bytes[at];
        let start = at;
        let token = match c {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = text[at + 2..].find("*/").map(|n| at + 2 + n + 2);
                let end = end.ok_or_else(|| Problem::syntax(line, "comment without end"))?;
                line += text[at..end].matches('\n').count() as u32;
                at = end;
                continue;
            }
            b'"' => {
                let end = text[at + 1..].find('"').map(|n| at + 1 + n);
                let end = end.ok_or_else(|| Problem::syntax(line, "string without end"))?;
                at = end + 1;
                Token::Text(&text[start + 1..end])
            }
            0 => break,
            _ if c.is_ascii_digit() => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'.') {
                    at += 1;
                }
                number(&text[start..at])
                    .ok_or_else(|| Problem::syntax(line, format!("bad number '{}'", &text[start..at])))?
            }
            _ if starts_word(c) => {
                while at < bytes.len() {
                    if in_word(bytes[at]) {
                        at += 1;
                    } else if bytes[at] == b':' && bytes.get(at + 1) == Some(&b':') {
                        at += 2;
                    } else {
                        break;
                    }
                }
                Token::Word(&text[start..at])
            }
            b',' | b';' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b'+' | b'-' | b'!'
            | b'=' | b':' | b'|' | b'@' | b'*' => {
                at += 1;
                Token::Punct(c)
            }
            _ => return Err(Problem::syntax(line, format!("unexpected character 0x{c:02x}"))),
        };
        out.push(Lexeme { token, line });
    }
    out.push(Lexeme { token: Token::End, line });
    Ok(out)
}

fn number(text: &str) -> Option<Token<'static>> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let prefix = text.get(..2).unwrap_or("");
    Some(match prefix {
        "0f" | "0F" if text.len() == 10 => Token::F32(u32::from_str_radix(&text[2..], 16).ok()?),
        "0d" | "0D" if text.len() == 18 => Token::F64(u64::from_str_radix(&text[2..], 16).ok()?),
        "0x" | "0X" => Token::Int(u64::from_str_radix(&digits[2..], 16).ok()? as i128),
        "0b" | "0B" => Token::Int(u64::from_str_radix(&digits[2..], 2).ok()? as i128),
        _ if text.contains('.') => Token::F64(text.parse::<f64>().ok()?.to_bits()),
        _ if digits.len() > 1 && digits.starts_with('0') => {
            Token::Int(u64::from_str_radix(digits, 8).ok()? as i128)
        }
        _ => Token::Int(digits.parse::<u64>().ok()? as i128),
    })
}
