//! Functions to decoded instructions: names to registers, labels to places, calls inlined.

use super::ast::{Function, Instruction, Operand, Source, Space, Statement, Type};
use super::lexer::Problem;
use super::names::Entry;
use crate::exec::inst::{Class, Inst, NONE, Preset, Signature, Slot};
use crate::exec::table;
use std::collections::HashMap;

pub type Lowered<T> = Result<T, Problem>;

/// Labels of a block in braces, and jumps that have not found theirs.
#[derive(Default)]
struct Labels<'a> {
    known: HashMap<&'a str, u32>,
    jumps: Vec<(usize, &'a str, u32)>,
}

/// One function body.
#[derive(Default)]
struct Frame<'a> {
    /// Of the blocks that are open, innermost last.
    labels: Vec<Labels<'a>>,
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
    pub presets: HashMap<(Class, Preset), Slot>,
    pub scopes: Vec<HashMap<&'a str, Entry>>,
    pub shared: HashMap<&'a str, Preset>,
    frames: Vec<Frame<'a>>,
    calls: Vec<&'a str>,
    pub local_bytes: u64,
    pub shared_bytes: u64,
    /// What dynamic shared memory must start at a multiple of.
    pub dynamic_align: u32,
    pub narrow_shared: bool,
    /// It uses mbarriers, bulk copies or wgmma.
    pub asynchronous: bool,
    /// Registers of wgmma, and where it is waited for.
    pub sums: Vec<Slot>,
    pub waits: Vec<usize>,
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
            dynamic_align: 16,
            narrow_shared: false,
            asynchronous: false,
            sums: Vec::new(),
            waits: Vec::new(),
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
        self.frames.push(Frame { labels: vec![Labels::default()], ..Frame::default() });
        self.scopes.push(HashMap::new());
        let depth = self.scopes.len();
        for statement in body {
            self.statement(statement)?;
        }
        self.scopes.truncate(depth - 1);
        // A body may end without ret.
        self.guard = NONE;
        self.leave()?;
        self.close_labels()?;
        let frame = self.frames.pop().unwrap_or_default();
        for at in frame.returns {
            self.insts[at].target = self.insts.len() as u32;
        }
        self.calls.pop();
        Ok(())
    }

    /// Ends a block: its jumps go to its own labels, the others to those of the block around it.
    fn close_labels(&mut self) -> Lowered<()> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        let Labels { known, jumps } = frame.labels.pop().unwrap_or_default();
        for (at, label, line) in jumps {
            match (known.get(label), frame.labels.last_mut()) {
                (Some(&target), _) => self.insts[at].target = target,
                (None, Some(outer)) => outer.jumps.push((at, label, line)),
                (None, None) => {
                    return Err(Problem::syntax(line, format!("Label '{label}' is not defined")));
                }
            }
        }
        Ok(())
    }

    fn labels(&mut self) -> Option<&mut Labels<'a>> {
        self.frames.last_mut()?.labels.last_mut()
    }

    fn statement(&mut self, statement: &'a Statement<'a>) -> Lowered<()> {
        match statement {
            Statement::Register(name, ty, count) => self.registers(name, *ty, *count),
            Statement::Variable(variable) => self.variable(variable),
            Statement::Label(name, line) => {
                let here = self.insts.len() as u32;
                if self.labels().is_some_and(|labels| labels.known.insert(name, here).is_some()) {
                    return Err(Problem::syntax(*line, format!("Duplicate definition of label '{name}'")));
                }
                Ok(())
            }
            Statement::Open => {
                self.scopes.push(HashMap::new());
                if let Some(frame) = self.frames.last_mut() {
                    frame.labels.push(Labels::default());
                }
                Ok(())
            }
            Statement::Close => {
                self.scopes.pop();
                self.close_labels()
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
        if let Some(labels) = self.labels() {
            labels.jumps.push((at, label, line));
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
        if super::needs_exact(opcode) && !self.source.target.ends_with(['a', 'f']) {
            return self.error(format!("Instruction '{opcode}' requires .target sm_90a"));
        }
        if target < least {
            return self.error(format!("Instruction '{opcode}' requires .target sm_{least} or higher"));
        }
        Ok(())
    }
}

pub fn class_of(ty: Type) -> Class {
    match ty.bits() {
        1 => Class::P,
        64 => Class::D,
        _ => Class::W,
    }
}
