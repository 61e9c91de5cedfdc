//! Tokens to the parsed module.

use super::ast::{Function, Instruction, Operand, Source, Space, Statement};
use super::lexer::{Lexeme, Problem, Token, lex};

pub type Parsed<T> = Result<T, Problem>;

pub struct Parser<'a> {
    tokens: Vec<Lexeme<'a>>,
    at: usize,
}

/// Parses a whole module.
pub fn parse(text: &str) -> Parsed<Source<'_>> {
    let mut parser = Parser { tokens: lex(text)?, at: 0 };
    parser.module()
}

impl<'a> Parser<'a> {
    pub fn peek(&self) -> Token<'a> {
        self.tokens[self.at].token
    }

    pub fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    pub fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    pub fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Problem::syntax(self.line(), message))
    }

    pub fn is(&mut self, c: u8) -> bool {
        let hit = self.peek() == Token::Punct(c);
        if hit {
            self.at += 1;
        }
        hit
    }

    pub fn expect(&mut self, c: u8) -> Parsed<()> {
        if self.is(c) {
            return Ok(());
        }
        self.error(format!("expected '{}' near {:?}", c as char, self.peek()))
    }

    pub fn word(&mut self) -> Parsed<&'a str> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => self.error(format!("expected a name near {other:?}")),
        }
    }

    pub fn int(&mut self) -> Parsed<i128> {
        let negative = self.is(b'-');
        match self.next() {
            Token::Int(value) => Ok(if negative { -value } else { value }),
            other => self.error(format!("expected an integer near {other:?}")),
        }
    }

    pub fn small(&mut self) -> Parsed<u32> {
        let value = self.int()?;
        u32::try_from(value).or_else(|_| self.error("number out of range"))
    }

    fn skip_to(&mut self, c: u8) {
        while self.peek() != Token::End && !self.is(c) {
            self.at += 1;
        }
    }

    fn module(&mut self) -> Parsed<Source<'a>> {
        let mut source = Source::default();
        loop {
            let line = self.line();
            match self.next() {
                Token::End => break,
                Token::Word(".version") => {
                    source.version_line = line;
                    source.version = self.version()?;
                }
                Token::Word(".target") => {
                    source.target_line = line;
                    source.target = self.word()?;
                    while self.is(b',') {
                        self.word()?;
                    }
                }
                Token::Word(".address_size") => {
                    if self.int()? != 64 {
                        return self.error("only .address_size 64 is supported");
                    }
                }
                Token::Word(".file") => {
                    let index = self.small()?;
                    if let Token::Text(name) = self.next() {
                        source.files.push((index, name));
                    }
                    while self.is(b',') {
                        self.next();
                    }
                }
                Token::Word(".section") => self.skip_to(b'}'),
                Token::Word(".visible" | ".weak" | ".common") => {}
                Token::Word(".extern") => self.external(&mut source)?,
                Token::Word(".entry") => source.functions.push(self.function(true, line)?),
                Token::Word(".func") => source.functions.push(self.function(false, line)?),
                Token::Word(word) => match space(word) {
                    Some(space) => source.variables.extend(self.variables(space, false)?),
                    None => {
                        return Err(Problem::unknown(line, format!("unknown directive '{word}'")));
                    }
                },
                other => return self.error(format!("unexpected {other:?}")),
            }
        }
        if source.version == (0, 0) {
            return Err(Problem::syntax(1, "Missing .version directive at start of file"));
        }
        if source.target.is_empty() {
            return Err(Problem::syntax(1, "Missing .target directive"));
        }
        Ok(source)
    }

    fn version(&mut self) -> Parsed<(u32, u32)> {
        match self.next() {
            Token::F64(bits) => {
                let tenths = (f64::from_bits(bits) * 10.0).round() as u32;
                Ok((tenths / 10, tenths % 10))
            }
            _ => self.error("bad .version"),
        }
    }

    fn external(&mut self, source: &mut Source<'a>) -> Parsed<()> {
        let line = self.line();
        match self.next() {
            Token::Word(".func") => {
                source.functions.push(self.function(false, line)?);
                Ok(())
            }
            Token::Word(".shared") => {
                source.variables.extend(self.variables(Space::Shared, true)?);
                Ok(())
            }
            _ => Err(Problem::unknown(line, "unresolved extern")),
        }
    }

    fn function(&mut self, entry: bool, line: u32) -> Parsed<Function<'a>> {
        let results = if entry { Vec::new() } else { self.params()? };
        let name = self.word()?;
        let params = self.params()?;
        let (mut max_threads, mut blocks, mut max_registers) = (1024, 0, 0);
        let mut cluster = None;
        loop {
            match self.next() {
                Token::Word(".maxntid" | ".reqntid") => {
                    max_threads = self.small()?;
                    while self.is(b',') {
                        max_threads = max_threads.saturating_mul(self.small()?);
                    }
                }
                Token::Word(".minnctapersm") => blocks = self.small()?,
                Token::Word(".maxnreg") => max_registers = self.small()?,
                Token::Word(".maxclusterrank") => {
                    self.small()?;
                }
                Token::Word(".explicitcluster") => {}
                Token::Word(".reqnctapercluster") => cluster = Some(self.cluster()?),
                Token::Word(".noreturn") => {}
                Token::Word(".pragma") => self.skip_to(b';'),
                Token::Punct(b';') => {
                    let body = None;
                    return Ok(Function {
                        name,
                        entry,
                        results,
                        params,
                        body,
                        max_threads,
                        blocks,
                        max_registers,
                        cluster,
                        line,
                    });
                }
                Token::Punct(b'{') => break,
                other => return self.error(format!("unexpected {other:?} before a function's body")),
            }
        }
        let body = Some(self.body()?);
        Ok(Function { name, entry, results, params, body, max_threads, blocks, max_registers, cluster, line })
    }

    fn cluster(&mut self) -> Parsed<[u32; 3]> {
        let mut size = [1; 3];
        size[0] = self.small()?;
        for count in &mut size[1..] {
            if self.is(b',') {
                *count = self.small()?;
            }
        }
        Ok(size)
    }

    fn body(&mut self) -> Parsed<Vec<Statement<'a>>> {
        let mut out = Vec::new();
        let mut depth = 1;
        loop {
            let line = self.line();
            match self.peek() {
                Token::Punct(b'{') => {
                    self.at += 1;
                    depth += 1;
                    out.push(Statement::Open);
                }
                Token::Punct(b'}') => {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        return Ok(out);
                    }
                    out.push(Statement::Close);
                }
                Token::Punct(b';') => self.at += 1,
                Token::Word(word) if word.starts_with('.') => self.directive(word, line, &mut out)?,
                Token::Word(word) if self.tokens[self.at + 1].token == Token::Punct(b':') => {
                    self.at += 2;
                    out.push(Statement::Label(word, line));
                }
                Token::Word(_) | Token::Punct(b'@') => out.push(self.instruction()?),
                other => return self.error(format!("unexpected {other:?}")),
            }
        }
    }

    fn directive(&mut self, word: &'a str, line: u32, out: &mut Vec<Statement<'a>>) -> Parsed<()> {
        self.at += 1;
        match word {
            ".reg" => {
                let (_, lanes, ty) = self.type_of()?;
                if lanes > 1 {
                    return Err(Problem::unknown(line, "vector registers"));
                }
                loop {
                    let name = self.word()?;
                    let count = if self.is(b'<') {
                        let count = self.small()?;
                        self.expect(b'>')?;
                        Some(count)
                    } else {
                        None
                    };
                    out.push(Statement::Register(name, ty, count));
                    if !self.is(b',') {
                        break;
                    }
                }
                self.expect(b';')?;
            }
            ".pragma" => self.skip_to(b';'),
            ".loc" => {
                let (file, number) = (self.small()?, self.small()?);
                self.small()?;
                while self.is(b',') {
                    self.word()?;
                    while let Token::Word(_) | Token::Int(_) | Token::Punct(b'+') = self.peek() {
                        self.at += 1;
                    }
                }
                out.push(Statement::Location(file, number));
            }
            ".extern" => {
                let space = space(self.word()?).unwrap_or(Space::Shared);
                out.extend(self.variables(space, true)?.into_iter().map(Statement::Variable));
            }
            _ => match space(word) {
                Some(space) => {
                    out.extend(self.variables(space, false)?.into_iter().map(Statement::Variable));
                }
                None => return Err(Problem::unknown(line, format!("unknown directive '{word}'"))),
            },
        }
        Ok(())
    }

    fn instruction(&mut self) -> Parsed<Statement<'a>> {
        let line = self.line();
        let mut guard = None;
        if self.is(b'@') {
            let negated = self.is(b'!');
            guard = Some((self.word()?, negated));
        }
        let opcode = self.word()?;
        let mut operands = Vec::new();
        while !self.is(b';') {
            operands.push(self.operand()?);
            if !self.is(b',') {
                self.expect(b';')?;
                break;
            }
        }
        Ok(Statement::Instruction(Instruction { guard, opcode, operands, line }))
    }

    fn list(&mut self, end: u8) -> Parsed<Vec<Operand<'a>>> {
        let mut found = Vec::new();
        while !self.is(end) {
            found.push(self.operand()?);
            if !self.is(b',') {
                self.expect(end)?;
                break;
            }
        }
        Ok(found)
    }

    fn operand(&mut self) -> Parsed<Operand<'a>> {
        Ok(match self.next() {
            Token::Word(name) => {
                if self.is(b'|') {
                    Operand::Pair(name, self.word()?)
                } else if let Token::Punct(b'+' | b'-') = self.peek() {
                    Operand::Offset(name, self.offset()?)
                } else {
                    Operand::Name(name)
                }
            }
            Token::Punct(b'!') => Operand::Not(self.word()?),
            Token::Punct(b'-') => match self.next() {
                Token::Int(value) => Operand::Int(-value),
                Token::F64(bits) => Operand::F64(bits ^ (1 << 63)),
                other => return self.error(format!("unexpected {other:?} after '-'")),
            },
            Token::Int(value) => Operand::Int(value),
            Token::F32(bits) => Operand::F32(bits),
            Token::F64(bits) => Operand::F64(bits),
            Token::Punct(b'{') => Operand::Vector(self.list(b'}')?),
            Token::Punct(b'(') => Operand::List(self.list(b')')?),
            Token::Punct(b'[') => {
                let base = match self.peek() {
                    Token::Word(name) => {
                        self.at += 1;
                        Some(name)
                    }
                    _ => None,
                };
                let offset = self.offset()?;
                if let Some(base) = base
                    && self.is(b',')
                {
                    self.expect(b'{')?;
                    let coordinates = self.list(b'}')?;
                    self.expect(b']')?;
                    return Ok(Operand::Tensor(base, offset, coordinates));
                }
                self.expect(b']')?;
                Operand::Address(base, offset)
            }
            other => return self.error(format!("unexpected operand {other:?}")),
        })
    }

    /// Any number of `+n` and `-n`.
    fn offset(&mut self) -> Parsed<i64> {
        let mut total: i128 = 0;
        loop {
            match self.peek() {
                Token::Punct(b'+') => {
                    self.at += 1;
                    total += self.int()?;
                }
                Token::Punct(b'-') | Token::Int(_) => total += self.int()?,
                _ => return i64::try_from(total).or_else(|_| self.error("offset out of range")),
            }
        }
    }
}

fn space(word: &str) -> Option<Space> {
    Some(match word {
        ".global" => Space::Global,
        ".const" => Space::Const,
        ".shared" => Space::Shared,
        ".local" => Space::Local,
        ".param" => Space::Param,
        _ => return None,
    })
}
