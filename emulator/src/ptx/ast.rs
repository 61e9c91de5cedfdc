//! The parsed module, before decoding.

/// A fundamental type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Pred,
    B(u32),
    U(u32),
    S(u32),
    F(u32),
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
}

impl Type {
    /// From its name without the dot.
    pub fn parse(name: &str) -> Option<Type> {
        Some(match name {
            "pred" => Type::Pred,
            "b8" => Type::B(8),
            "b16" => Type::B(16),
            "b32" => Type::B(32),
            "b64" => Type::B(64),
            "u8" => Type::U(8),
            "u16" => Type::U(16),
            "u32" => Type::U(32),
            "u64" => Type::U(64),
            "s8" => Type::S(8),
            "s16" => Type::S(16),
            "s32" => Type::S(32),
            "s64" => Type::S(64),
            "f16" => Type::F(16),
            "f32" => Type::F(32),
            "f64" => Type::F(64),
            "f16x2" => Type::F16x2,
            "bf16" => Type::Bf16,
            "bf16x2" => Type::Bf16x2,
            "tf32" => Type::Tf32,
            _ => return None,
        })
    }

    pub fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B(n) | Type::U(n) | Type::S(n) | Type::F(n) => n,
            Type::Bf16 => 16,
            Type::F16x2 | Type::Bf16x2 | Type::Tf32 => 32,
        }
    }

    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }
}

/// A state space that a variable or an access names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// A variable or a parameter.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    pub name: &'a str,
    pub space: Space,
    pub align: u32,
    pub bytes: u64,
    pub init: Vec<u8>,
    /// `.extern .shared`: the launch gives the size.
    pub external: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    Name(&'a str),
    /// `!p`
    Not(&'a str),
    /// `name+offset` outside brackets
    Offset(&'a str, i64),
    Int(i128),
    F32(u32),
    F64(u64),
    /// `[base+offset]`; no base for a plain number.
    Address(Option<&'a str>, i64),
    /// `[base+offset, {coordinates}]`
    Tensor(&'a str, i64, Vec<Operand<'a>>),
    Vector(Vec<Operand<'a>>),
    /// `p|q`
    Pair(&'a str, &'a str),
    /// `(a, b)` of a call
    List(Vec<Operand<'a>>),
}

#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// The guard's register and whether it is negated.
    pub guard: Option<(&'a str, bool)>,
    pub opcode: &'a str,
    pub operands: Vec<Operand<'a>>,
    pub line: u32,
}

#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// Name, type; a count for `%r<10>`.
    Register(&'a str, Type, Option<u32>),
    Variable(Variable<'a>),
    Label(&'a str, u32),
    Instruction(Instruction<'a>),
    Open,
    Close,
    /// `.loc`: file, line of the CUDA source.
    Location(u32, u32),
}

#[derive(Clone, Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    pub entry: bool,
    pub results: Vec<Variable<'a>>,
    pub params: Vec<Variable<'a>>,
    /// None for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    pub max_threads: u32,
    /// .minnctapersm and .maxnreg; 0 without them.
    pub blocks: u32,
    pub max_registers: u32,
    /// .reqnctapercluster.
    pub cluster: Option<[u32; 3]>,
    pub line: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Source<'a> {
    pub version: (u32, u32),
    pub version_line: u32,
    pub target: &'a str,
    pub target_line: u32,
    pub variables: Vec<Variable<'a>>,
    pub functions: Vec<Function<'a>>,
    pub files: Vec<(u32, &'a str)>,
}
