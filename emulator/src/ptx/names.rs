//! Names of registers and variables, and operands as registers.

use super::ast::{Operand, Space, Type, Variable};
use super::lower::{Lower, Lowered, class_of};
use crate::exec::inst::{Class, NONE, NOT, Preset, Slot, Special};
use crate::exec::table;

#[derive(Clone, Copy)]
pub enum Entry {
    /// Type, first register, and how many where the name is a prefix.
    Registers(Type, Slot, Option<u32>),
    Place(Space, Preset),
}

impl<'a> Lower<'a> {
    pub fn registers(&mut self, name: &'a str, ty: Type, count: Option<u32>) -> Lowered<()> {
        let n = count.unwrap_or(1) as usize;
        let first = match class_of(ty) {
            Class::P => {
                self.preds += n;
                self.preds - n
            }
            Class::D => {
                self.doubles.resize(self.doubles.len() + n, None);
                self.doubles.len() - n
            }
            _ => {
                self.words.resize(self.words.len() + n, None);
                self.words.len() - n
            }
        };
        let most = if ty == Type::Pred { 0x7ff0 } else { 0xfff0 };
        if first + n > most {
            return self.unknown("more registers than the emulator can name");
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, Entry::Registers(ty, first as Slot, count));
        }
        Ok(())
    }

    pub fn variable(&mut self, variable: &'a Variable<'a>) -> Lowered<()> {
        let entry = match variable.space {
            Space::Local | Space::Param => Entry::Place(Space::Local, self.local(variable)),
            Space::Shared => Entry::Place(Space::Shared, self.share(variable)),
            _ => return self.unknown("a variable of this space inside a function"),
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(variable.name, entry);
        }
        Ok(())
    }

    fn local(&mut self, variable: &Variable<'_>) -> Preset {
        let offset = self.local_bytes.next_multiple_of(u64::from(variable.align.max(1)));
        self.local_bytes = offset + variable.bytes;
        Preset::Value(offset)
    }

    fn share(&mut self, variable: &Variable<'a>) -> Preset {
        if variable.external {
            self.dynamic_align = self.dynamic_align.max(variable.align);
            return Preset::DynamicShared(0);
        }
        let offset = self.shared_bytes.next_multiple_of(u64::from(variable.align.max(1)));
        self.shared_bytes = offset + variable.bytes;
        Preset::Value(offset)
    }

    pub fn lookup(&mut self, name: &str) -> Option<Entry> {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (prefix, number) = name.split_at(name.len() - digits);
        for scope in self.scopes.iter().rev() {
            match scope.get(name) {
                Some(Entry::Registers(_, _, Some(_))) | None => {}
                Some(&entry) => return Some(entry),
            }
            if let (Some(Entry::Registers(ty, first, Some(count))), Ok(n)) =
                (scope.get(prefix), number.parse::<u32>())
                && n < *count
            {
                return Some(Entry::Registers(*ty, first + n as Slot, None));
            }
        }
        self.module_variable(name)
    }

    fn module_variable(&mut self, name: &str) -> Option<Entry> {
        let source = self.source;
        let index = source.variables.iter().position(|variable| variable.name == name)?;
        let variable = &source.variables[index];
        if variable.space != Space::Shared {
            return Some(Entry::Place(variable.space, Preset::Symbol(index as u32, 0)));
        }
        if let Some(&preset) = self.shared.get(variable.name) {
            return Some(Entry::Place(Space::Shared, preset));
        }
        let preset = self.share(variable);
        self.shared.insert(variable.name, preset);
        Some(Entry::Place(Space::Shared, preset))
    }

    /// The register that holds a value from the start.
    pub fn preset(&mut self, class: Class, preset: Preset) -> Slot {
        if let Some(&slot) = self.presets.get(&(class, preset)) {
            return slot;
        }
        let file = if class == Class::D { &mut self.doubles } else { &mut self.words };
        let slot = file.len() as Slot;
        file.push(Some(preset));
        self.presets.insert((class, preset), slot);
        slot
    }

    /// A source operand of the class that a form's letter names.
    pub fn source(&mut self, operand: &Operand<'a>, letter: u8) -> Lowered<Slot> {
        let class = table::class(letter);
        if class == Class::P {
            let (name, flip) = match operand {
                Operand::Name(name) => (name, 0),
                Operand::Not(name) => (name, NOT),
                Operand::Int(value) => return Ok(if *value == 0 { NOT } else { 0 }),
                _ => return self.error("expected a predicate"),
            };
            return match self.lookup(name) {
                Some(Entry::Registers(Type::Pred, slot, _)) => Ok(slot | flip),
                Some(_) => self.error(format!("'{name}' is no predicate")),
                None => self.error(format!("Unknown symbol '{name}'")),
            };
        }
        let preset = match operand {
            Operand::Name(name) => match self.lookup(name) {
                Some(Entry::Registers(ty, slot, _)) => {
                    self.check(name, ty, letter)?;
                    return Ok(slot);
                }
                Some(Entry::Place(_, preset)) => preset,
                None if *name == "WARP_SZ" => Preset::Value(32),
                None => match Special::parse(name) {
                    Some(special) => Preset::Special(special),
                    None if name.starts_with('%') && !name.ends_with(|c: char| c.is_ascii_digit()) => {
                        return self.unknown(format!("unknown special register '{name}'"));
                    }
                    None => return self.error(format!("Unknown symbol '{name}'")),
                },
            },
            Operand::Offset(name, offset) => match self.lookup(name) {
                Some(Entry::Place(_, preset)) => shifted(preset, *offset),
                _ => return self.error(format!("'{name}' is no variable")),
            },
            Operand::Int(value) => {
                let value = *value as u64;
                Preset::Value(if class == Class::W { value & 0xffff_ffff } else { value })
            }
            Operand::F32(bits) if class == Class::W => Preset::Value(u64::from(*bits)),
            Operand::F32(bits) => Preset::Value(f64::from(f32::from_bits(*bits)).to_bits()),
            Operand::F64(bits) if class == Class::W => {
                Preset::Value(u64::from((f64::from_bits(*bits) as f32).to_bits()))
            }
            Operand::F64(bits) => Preset::Value(*bits),
            other => return self.error(format!("Arguments mismatch: {other:?}")),
        };
        Ok(self.preset(class, preset))
    }

    fn check(&self, name: &str, ty: Type, letter: u8) -> Lowered<()> {
        let fits = match letter {
            b'w' => ty.bits() == 32,
            b'd' => ty.bits() == 64,
            b'h' => ty.bits() == 16 || ty.bits() == 8,
            b'p' => ty == Type::Pred,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        self.error(format!("Arguments mismatch: '{name}' is of type {ty:?}"))
    }

    /// A result operand; `_` is none.
    pub fn result(&mut self, operand: &Operand<'a>, letter: u8) -> Lowered<Slot> {
        let Operand::Name(name) = operand else {
            return self.error("expected a register for the result");
        };
        if *name == "_" {
            return Ok(NONE);
        }
        match self.lookup(name) {
            Some(Entry::Registers(ty, slot, _)) => {
                self.check(name, ty, letter)?;
                Ok(slot)
            }
            Some(_) => self.error(format!("'{name}' is no register")),
            None => self.error(format!("Unknown symbol '{name}'")),
        }
    }

    /// The type of a register operand.
    pub fn type_of(&mut self, operand: &Operand<'a>) -> Option<Type> {
        let Operand::Name(name) = operand else { return None };
        match self.lookup(name) {
            Some(Entry::Registers(ty, _, _)) => Some(ty),
            _ => None,
        }
    }
}

pub fn shifted(preset: Preset, by: i64) -> Preset {
    match preset {
        Preset::Value(value) => Preset::Value(value.wrapping_add(by as u64)),
        Preset::Symbol(symbol, offset) => Preset::Symbol(symbol, offset + by),
        Preset::DynamicShared(offset) => Preset::DynamicShared(offset + by),
        special => special,
    }
}
