//! Functions to decoded instructions: names to registers, labels to places, calls inlined.

use super::ast::{Function, Instruction, Operand, Source, Space, Statement, Type, Variable};
use super::lexer::Problem;
use crate::exec::inst::{Class, Inst, NONE, Preset, Signature, Slot, Special};
use crate::exec::table;
use std::collections::HashMap;

pub type Lowered<T> = Result<T, Problem>;

#[derive(Clone, Copy)]
pub enum Entry {
    /// Type, first register, and how many where the name is a prefix.
    Registers(Type, Slot, Option<u32>),
    Place(Space, Preset),
}

/// Labels and jumps of one function body.
#[derive(Default)]
struct Frame<'a> {
    labels: HashMap<&'a str, u32>,
    jumps: Vec<(usize, &'a str, u32)>,
    /// Returns of an inlined function, which go to its end.
    returns: Vec<usize>,
}

pub struct Lower<'a> {
    pub source: &'a Source<'a>,
    pub insts: Vec<Inst>,
    pub signatures: Vec<Signature>,
    /// Registers of each class; those that are preset with their values.
    pub words: Vec<Option<Preset>>,
    pub doubles: Vec<Option<Preset>>,
    pub preds: usize,
    presets: HashMap<(Class, Preset), Slot>,
    scopes: Vec<HashMap<&'a str, Entry>>,
    shared: HashMap<&'a str, Preset>,
    frames: Vec<Frame<'a>>,
    calls: Vec<&'a str>,
    pub local_bytes: u64,
    pub shared_bytes: u64,
    pub narrow_shared: bool,
    pub locations: Vec<(u32, u32, u32)>,
    pub line: u32,
    guard: Slot,
}

impl<'a> Lower<'a> {
    pub fn new(source: &'a Source<'a>) -> Lower<'a> {
        Lower {
            source,
            insts: Vec::new(),
            signatures: Vec::new(),
            words: Vec::new(),
            doubles: Vec::new(),
            preds: 1,
            presets: HashMap::new(),
            scopes: Vec::new(),
            shared: HashMap::new(),
            frames: Vec::new(),
            calls: Vec::new(),
            local_bytes: 0,
            shared_bytes: 0,
            narrow_shared: false,
            locations: Vec::new(),
            line: 0,
            guard: NONE,
        }
    }

    pub fn error<T>(&self, message: impl Into<String>) -> Lowered<T> {
        Err(Problem::syntax(self.line, message))
    }

    pub fn unknown<T>(&self, message: impl Into<String>) -> Lowered<T> {
        Err(Problem::unknown(self.line, message))
    }

    /// Lowers a kernel; gives the places of its parameters.
    pub fn kernel(&mut self, function: &'a Function<'a>) -> Lowered<Vec<crate::Param>> {
        let mut params = Vec::new();
        let mut scope = HashMap::new();
        let mut offset = 0u32;
        for param in &function.params {
            let align = param.align.max(1);
            let size = param.bytes as u32;
            offset = offset.next_multiple_of(align);
            params.push(crate::Param { offset, size, align });
            scope.insert(param.name, Entry::Place(Space::Param, Preset::Value(u64::from(offset))));
            offset += size;
        }
        if offset > 4352 {
            return self.error("more than 4,352 bytes of parameters");
        }
        self.scopes.push(scope);
        self.body(function)?;
        self.scopes.pop();
        Ok(params)
    }

    fn body(&mut self, function: &'a Function<'a>) -> Lowered<()> {
        let Some(body) = &function.body else {
            return self.unknown(format!("function '{}' has no body", function.name));
        };
        self.calls.push(function.name);
        self.frames.push(Frame::default());
        self.scopes.push(HashMap::new());
        let depth = self.scopes.len();
        for statement in body {
            self.statement(statement)?;
        }
        self.scopes.truncate(depth - 1);
        // A body may end without ret.
        self.guard = NONE;
        self.leave()?;
        let frame = self.frames.pop().unwrap_or_default();
        for (at, label, line) in frame.jumps {
            match frame.labels.get(label) {
                Some(&target) => self.insts[at].target = target,
                None => return Err(Problem::syntax(line, format!("Label '{label}' is not defined"))),
            }
        }
        for at in frame.returns {
            self.insts[at].target = self.insts.len() as u32;
        }
        self.calls.pop();
        Ok(())
    }

    fn statement(&mut self, statement: &'a Statement<'a>) -> Lowered<()> {
        match statement {
            Statement::Register(name, ty, count) => self.registers(name, *ty, *count),
            Statement::Variable(variable) => self.variable(variable),
            Statement::Label(name, line) => {
                let here = self.insts.len() as u32;
                let frame = self.frames.last_mut();
                if frame.is_some_and(|f| f.labels.insert(name, here).is_some()) {
                    return Err(Problem::syntax(*line, format!("Duplicate definition of label '{name}'")));
                }
                Ok(())
            }
            Statement::Open => {
                self.scopes.push(HashMap::new());
                Ok(())
            }
            Statement::Close => {
                self.scopes.pop();
                Ok(())
            }
            Statement::Location(file, line) => {
                self.locations.push((self.line, *file, *line));
                Ok(())
            }
            Statement::Instruction(instruction) => {
                self.line = instruction.line;
                self.guard = match instruction.guard {
                    None => NONE,
                    Some((name, negated)) => {
                        let operand = if negated { Operand::Not(name) } else { Operand::Name(name) };
                        self.source(&operand, b'p')?
                    }
                };
                self.needs(instruction.opcode)?;
                self.instruction(instruction)
            }
        }
    }

    fn registers(&mut self, name: &'a str, ty: Type, count: Option<u32>) -> Lowered<()> {
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

    fn variable(&mut self, variable: &'a Variable<'a>) -> Lowered<()> {
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
            {
                if n < *count {
                    return Some(Entry::Registers(*ty, first + n as Slot, None));
                }
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
                Operand::Not(name) => (name, crate::exec::inst::NOT),
                Operand::Int(value) => return Ok(if *value == 0 { crate::exec::inst::NOT } else { 0 }),
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

    pub fn blank(&self, run: crate::exec::inst::Handler) -> Inst {
        Inst {
            run,
            extra: Box::default(),
            imm: 0,
            d: [NONE; 4],
            s: [NONE; 5],
            guard: self.guard,
            jumps: false,
            target: 0,
            line: self.line,
            mode: 0,
        }
    }

    pub fn emit(&mut self, inst: Inst, signature: Signature) {
        self.insts.push(inst);
        self.signatures.push(signature);
    }

    /// An instruction of the tables.
    pub fn plain(&mut self, name: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let Some(row) = table::find(name) else {
            return self.unknown(format!("Not a name of any known instruction: '{name}'"));
        };
        let (d, s) = table::letters(row.form);
        if operands.len() != d.len() + s.len() {
            return self.error(format!("Unexpected number of arguments for '{name}'"));
        }
        let mut inst = self.blank(row.run);
        for (n, &letter) in d.iter().enumerate() {
            inst.d[n] = self.result(&operands[n], letter)?;
            if inst.d[n] == NONE {
                return self.error("'_' is no result here");
            }
        }
        for (n, &letter) in s.iter().enumerate() {
            inst.s[n] = self.source(&operands[d.len() + n], letter)?;
        }
        self.emit(inst, table::signature(row.form));
        Ok(())
    }

    pub fn jump(&mut self, label: &'a str) {
        let mut inst = self.blank(table::warp::branch);
        inst.jumps = true;
        let at = self.insts.len();
        let line = self.line;
        if let Some(frame) = self.frames.last_mut() {
            frame.jumps.push((at, label, line));
        }
        self.emit(inst, Signature::default());
    }

    /// ret: the end of a kernel, or a jump to the end of an inlined body.
    pub fn leave(&mut self) -> Lowered<()> {
        if self.frames.len() == 1 {
            return self.plain("exit", &[]);
        }
        let at = self.insts.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.returns.push(at);
        }
        let mut inst = self.blank(table::warp::branch);
        inst.jumps = true;
        self.emit(inst, Signature::default());
        Ok(())
    }

    pub fn call(&mut self, operands: &[Operand<'a>]) -> Lowered<()> {
        let (results, rest) = match operands {
            [Operand::List(results), rest @ ..] => (&results[..], rest),
            rest => (&[][..], rest),
        };
        let (name, arguments) = match rest {
            [Operand::Name(name)] => (*name, &[][..]),
            [Operand::Name(name), Operand::List(arguments)] => (*name, &arguments[..]),
            _ => return self.unknown("an indirect call"),
        };
        if self.guard != NONE {
            return self.unknown("a predicated call");
        }
        let source = self.source;
        let function = source.functions.iter().find(|f| f.name == name && !f.entry && f.body.is_some());
        let Some(function) = function else {
            return self.unknown(format!("call of '{name}', which has no body here"));
        };
        if self.calls.contains(&name) {
            return self.unknown("a recursive call");
        }
        if results.len() != function.results.len() || arguments.len() != function.params.len() {
            return self.error(format!("Unexpected number of arguments for '{name}'"));
        }
        let mut scope = HashMap::new();
        let formals = function.results.iter().chain(&function.params);
        for (formal, actual) in formals.zip(results.iter().chain(arguments)) {
            let Operand::Name(actual) = actual else {
                return self.unknown("a call whose argument is no .param variable");
            };
            match self.lookup(actual) {
                Some(entry @ Entry::Place(Space::Local, _)) => scope.insert(formal.name, entry),
                _ => return self.unknown(format!("argument '{actual}' is no .param variable")),
            };
        }
        let outer = std::mem::replace(&mut self.scopes, vec![scope]);
        self.body(function)?;
        self.scopes = outer;
        Ok(())
    }

    fn instruction(&mut self, instruction: &'a Instruction<'a>) -> Lowered<()> {
        self.decode(instruction.opcode, &instruction.operands)
    }

    /// Refuses what the module's .target does not have.
    fn needs(&self, opcode: &str) -> Lowered<()> {
        let least = super::needed_target(opcode);
        let target = super::target_number(self.source.target).unwrap_or(0);
        if target < least {
            return self.error(format!("Instruction '{opcode}' requires .target sm_{least} or higher"));
        }
        Ok(())
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

pub fn class_of(ty: Type) -> Class {
    match ty.bits() {
        1 => Class::P,
        64 => Class::D,
        _ => Class::W,
    }
}
