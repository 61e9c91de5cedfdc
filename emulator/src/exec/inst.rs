//! Decoded instructions.

use super::cx::Cx;

/// A register within its class; for predicates with `NOT` for the negated value.
pub type Slot = u16;
pub const NONE: Slot = u16::MAX;
pub const NOT: Slot = 0x8000;

pub type Handler = for<'a> fn(&mut Cx<'a>, &Inst, u32) -> Flow;

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// The lanes of the mask go to the target.
    Branch,
    Exit,
    /// Wait at this barrier.
    Barrier(u8),
    /// Wait until the other lanes named by a `.sync` mask are here.
    Converge,
    /// Wait for something to change in the block, then try again.
    Sleep(Reason),
    /// Go on once the others had their turn.
    Yield,
    /// The first result is the warp's clock, in 64 bits or in 32.
    Clock {
        wide: bool,
    },
    /// `Cx::fault` says what.
    Fault,
}

/// What a sleeping thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Mbarrier,
    Registers,
    Cluster,
}

pub struct Inst {
    pub run: Handler,
    /// Sources beyond five, as matrix fragments have.
    pub extra: Box<[Slot]>,
    pub imm: i64,
    pub d: [Slot; 4],
    pub s: [Slot; 5],
    pub guard: Slot,
    pub jumps: bool,
    pub target: u32,
    pub line: u32,
    /// Options of the handler: see `mode`.
    pub mode: u32,
}

/// Bits of `Inst::mode` for accesses to memory.
pub mod mode {
    /// The address register has 64 bits.
    pub const WIDE: u32 = 1;
    pub const SIZE_SHIFT: u32 = 1;
    pub const VECTOR_SHIFT: u32 = 4;
    pub const SIGNED: u32 = 1 << 7;
    /// The value registers have 64 bits.
    pub const DOUBLE: u32 = 1 << 8;
    /// Volatile, relaxed, acquire, release: takes part in no race.
    pub const STRONG: u32 = 1 << 9;
    /// The first bit that a handler may use for its own options.
    pub const FREE_SHIFT: u32 = 10;
}

impl Inst {
    /// Bytes of one element that an access moves.
    pub fn size(&self) -> u64 {
        1 << ((self.mode >> mode::SIZE_SHIFT) & 7)
    }

    pub fn lanes(&self) -> usize {
        1 << ((self.mode >> mode::VECTOR_SHIFT) & 7)
    }

    pub fn has(&self, bit: u32) -> bool {
        self.mode & bit != 0
    }

    pub fn option(&self) -> u32 {
        self.mode >> mode::FREE_SHIFT
    }
}

/// The class of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Class {
    #[default]
    None,
    /// Up to 32 bits.
    W,
    /// 64 bits.
    D,
    /// A predicate.
    P,
}

/// The classes of an instruction's operands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signature {
    pub d: [Class; 4],
    pub s: [Class; 5],
    pub extra: Class,
    /// A plain move of a register.
    pub moves: bool,
}

/// Values that a register holds from the start of every warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    Value(u64),
    /// A variable's address: index into the module's variables, offset.
    Symbol(u32, i64),
    /// Where dynamic shared memory starts.
    DynamicShared(i64),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    Clusterid(u8),
    Nclusterid(u8),
    ClusterRank,
    ClusterSize,
    Gridid,
    LanemaskEq,
    LanemaskLt,
    LanemaskLe,
    LanemaskGt,
    LanemaskGe,
    DynamicSize,
    TotalSize,
}

impl Special {
    pub fn parse(name: &str) -> Option<Special> {
        let axis = |name: &str| match name {
            "x" => Some(0),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        if let Some((base, part)) = name.split_once('.') {
            let axis = axis(part)?;
            return Some(match base {
                "%tid" => Special::Tid(axis),
                "%ntid" => Special::Ntid(axis),
                "%ctaid" => Special::Ctaid(axis),
                "%nctaid" => Special::Nctaid(axis),
                "%cluster_ctaid" => Special::ClusterCtaid(axis),
                "%cluster_nctaid" => Special::ClusterNctaid(axis),
                "%clusterid" => Special::Clusterid(axis),
                "%nclusterid" => Special::Nclusterid(axis),
                _ => return None,
            });
        }
        Some(match name {
            "%laneid" => Special::Laneid,
            "%warpid" => Special::Warpid,
            "%nwarpid" => Special::Nwarpid,
            "%smid" => Special::Smid,
            "%nsmid" => Special::Nsmid,
            "%cluster_ctarank" => Special::ClusterRank,
            "%cluster_nctarank" => Special::ClusterSize,
            "%gridid" => Special::Gridid,
            "%lanemask_eq" => Special::LanemaskEq,
            "%lanemask_lt" => Special::LanemaskLt,
            "%lanemask_le" => Special::LanemaskLe,
            "%lanemask_gt" => Special::LanemaskGt,
            "%lanemask_ge" => Special::LanemaskGe,
            "%dynamic_smem_size" => Special::DynamicSize,
            "%total_smem_size" => Special::TotalSize,
            _ => return None,
        })
    }
}

/// An instruction that touches registers of wgmma: what it does, and which operands those are.
pub struct Watched {
    pub run: Handler,
    pub d: [bool; 4],
    pub s: [bool; 5],
    /// It only moves a register to another one.
    pub moves: bool,
}

/// A kernel's code and what a warp needs to run it.
pub struct Code {
    pub insts: Vec<Inst>,
    /// Registers of each class, presets included.
    pub words: usize,
    pub doubles: usize,
    pub predicates: usize,
    pub word_presets: Vec<(Slot, Preset)>,
    pub double_presets: Vec<(Slot, Preset)>,
    /// Some access to shared memory is smaller than four bytes.
    pub narrow_shared: bool,
    /// It uses mbarriers, bulk copies or wgmma.
    pub asynchronous: bool,
    /// Instructions beside wgmma that touch its registers, by `Inst::target`.
    pub watched: Vec<Watched>,
    /// The module's text, for messages.
    pub text: std::sync::Arc<str>,
    /// From which line of the text on a place in the CUDA source holds.
    pub sources: Vec<(u32, String)>,
}
