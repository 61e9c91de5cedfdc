//! Variables and parameters.

use super::ast::{Space, Type, Variable};
use super::lexer::{Problem, Token};
use super::parser::{Parsed, Parser};

impl<'a> Parser<'a> {
    /// `.align n .type name[count] = {...}, name2 ...;`
    pub fn variables(&mut self, space: Space, external: bool) -> Parsed<Vec<Variable<'a>>> {
        let mut found = Vec::new();
        let (align, lanes, ty) = self.type_of()?;
        loop {
            found.push(self.variable(space, align, lanes, ty, external)?);
            if !self.is(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(found)
    }

    pub fn type_of(&mut self) -> Parsed<(u32, u32, Type)> {
        let (mut align, mut lanes) = (0, 1);
        loop {
            let line = self.line();
            match self.word()? {
                ".align" => align = self.small()?,
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                ".ptr" | ".const" | ".global" | ".shared" | ".local" => {}
                word => {
                    let ty = Type::parse(word.trim_start_matches('.'));
                    let ty = ty.ok_or_else(|| Problem::unknown(line, format!("unknown type '{word}'")))?;
                    return Ok((align.max(ty.bytes() * lanes), lanes, ty));
                }
            }
        }
    }

    fn variable(
        &mut self,
        space: Space,
        align: u32,
        lanes: u32,
        ty: Type,
        external: bool,
    ) -> Parsed<Variable<'a>> {
        let mut name = self.word()?;
        let mut align = align;
        while let ".ptr" | ".align" | ".global" | ".shared" | ".const" | ".local" = name {
            // The attributes of a pointer parameter say nothing about its own place.
            if name == ".align" {
                self.small()?;
                align = ty.bytes();
            }
            name = self.word()?;
        }
        let mut count = u64::from(lanes);
        let mut external = external;
        while self.is(b'[') {
            if self.is(b']') {
                external = true;
                count = 0;
                continue;
            }
            let size = self.int()?;
            count = u64::try_from(size).ok().and_then(|n| count.checked_mul(n)).unwrap_or(u64::MAX);
            self.expect(b']')?;
        }
        let bytes = match count.checked_mul(u64::from(ty.bytes())) {
            Some(bytes) if bytes <= 1 << 31 => bytes,
            _ => return self.error(format!("variable '{name}' is too large")),
        };
        let mut init = Vec::new();
        if self.is(b'=') {
            self.initial(ty, &mut init)?;
            if init.len() as u64 > bytes {
                return self.error(format!("too many initial values for '{name}'"));
            }
        }
        Ok(Variable { name, space, align, bytes, init, external })
    }

    fn initial(&mut self, ty: Type, out: &mut Vec<u8>) -> Parsed<()> {
        if self.is(b'{') {
            while !self.is(b'}') {
                self.initial(ty, out)?;
                self.is(b',');
            }
            return Ok(());
        }
        let negative = self.is(b'-');
        let value = match self.next() {
            Token::Int(value) => (if negative { -value } else { value }) as u64,
            Token::F32(bits) if ty == Type::F(64) => f64::from(f32::from_bits(bits)).to_bits(),
            Token::F32(bits) => u64::from(bits),
            Token::F64(bits) if ty == Type::F(32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            Token::F64(bits) => bits,
            other => return Err(Problem::unknown(self.line(), format!("initial value {other:?}"))),
        };
        out.extend_from_slice(&value.to_le_bytes()[..ty.bytes() as usize]);
        Ok(())
    }

    pub fn params(&mut self) -> Parsed<Vec<Variable<'a>>> {
        let mut found = Vec::new();
        if !self.is(b'(') {
            return Ok(found);
        }
        while !self.is(b')') {
            if self.word()? != ".param" {
                return self.error("expected .param");
            }
            let (align, lanes, ty) = self.type_of()?;
            found.push(self.variable(Space::Param, align, lanes, ty, false)?);
            self.is(b',');
        }
        Ok(found)
    }
}
