//! What the emulated machine is and which failures it has, from `WARPWRIGHT_EMULATOR`.

use super::status::Status;
use std::collections::BTreeMap;

/// The variable that holds the configuration: `key=value` pairs parted by commas, or the path of a file with one pair a
/// line.
pub const VARIABLE: &str = "WARPWRIGHT_EMULATOR";
/// The variable that names the file which findings are appended to.
pub const REPORT_VARIABLE: &str = "WARPWRIGHT_EMULATOR_REPORT";

/// Which calls or launches of one name something applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// That one, counted from 1.
    Nth(u64),
    /// That one and all later ones.
    From(u64),
}

impl Turn {
    /// Whether the call of that number is meant.
    pub fn is(self, number: u64) -> bool {
        match self {
            Turn::Nth(turn) => number == turn,
            Turn::From(turn) => number >= turn,
        }
    }
}

/// An answer to give in place of a call's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exported symbol.
    pub symbol: String,
    /// Which calls.
    pub turn: Turn,
    /// The answer.
    pub status: Status,
}

/// A launch that faults when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFault {
    /// The kernel, `*` for any.
    pub kernel: String,
    /// The error that poisons the context.
    pub status: Status,
    /// Which launches of it.
    pub turn: Turn,
}

/// When queued work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// As late as possible: when something waits for it.
    Lazy,
    /// As early as possible: when it is submitted.
    Eager,
}

/// The emulated machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Number of cards.
    pub devices: usize,
    /// 75, 80 or 90.
    pub compute_capability: u32,
    /// Bytes of each card.
    pub memory: usize,
    /// Multiprocessors of each card.
    pub multiprocessors: u32,
    /// How many times faster than plain float32 its products of float16 are; `None` for what such cards have.
    pub tensor: Option<u32>,
    /// As cuDriverGetVersion gives it.
    pub driver: i32,
    /// Newest PTX version that the driver takes, (major, minor).
    pub ptx: (u32, u32),
    /// Optional functions that answer "not supported" and that cuGetProcAddress does not know.
    pub absent: Vec<String>,
    /// Calls that fail.
    pub failures: Vec<Failure>,
    /// Launches that fault.
    pub faults: Vec<KernelFault>,
    /// Milliseconds that launches of a kernel take longer; `*` for any kernel.
    pub slow: BTreeMap<String, u64>,
    /// When queued work runs.
    pub schedule: Schedule,
    /// Items of work that a stream holds before the oldest runs.
    pub queue: usize,
    /// Names of checkers that are off.
    pub off: Vec<String>,
    /// Whether memory that is left at the end of the process is a finding.
    pub exit_leaks: bool,
    /// Whether a card gets a new context after a fault; newer drivers refuse every one for the rest of the process.
    pub recover: bool,
    /// Whether races in global memory are looked for, which is slow.
    pub global_races: bool,
    /// Whether kernels run. Else launches are noted and do nothing.
    pub run: bool,
}

/// What `checks=` names: the driver layer's own checkers, then those of the interpreter.
pub const CHECKERS: &[&str] =
    &["handles", "leaks", "host", "source", "memory", "uninitialised", "races", "barriers"];

impl Default for Config {
    fn default() -> Config {
        Config {
            devices: 1,
            compute_capability: 80,
            memory: 1 << 30,
            multiprocessors: 8,
            tensor: None,
            driver: 12040,
            ptx: (8, 4),
            absent: Vec::new(),
            failures: Vec::new(),
            faults: Vec::new(),
            slow: BTreeMap::new(),
            schedule: Schedule::Lazy,
            queue: 1024,
            off: Vec::new(),
            exit_leaks: false,
            recover: true,
            global_races: false,
            run: true,
        }
    }
}

impl Config {
    /// The configuration that the environment gives, read anew; the error names the pair that is wrong.
    pub fn from_environment() -> Result<Config, String> {
        let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(Config::default());
        };
        let value = value.to_string_lossy();
        if value.contains('=') {
            return Config::parse(&value);
        }
        let text =
            std::fs::read_to_string(&*value).map_err(|error| format!("{VARIABLE}: {value}: {error}"))?;
        Config::parse(&text)
    }

    /// Reads pairs parted by commas or line ends; `#` begins a comment.
    pub fn parse(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        let mut ptx = None;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        for pair in lines.flat_map(|line| line.split(',')).map(str::trim).filter(|pair| !pair.is_empty()) {
            let wrong = |reason: &str| format!("{VARIABLE}: '{pair}': {reason}");
            let (key, value) = pair.split_once('=').ok_or_else(|| wrong("expected key=value"))?;
            match (key.trim(), value.trim()) {
                ("ptx", value) => {
                    ptx = Some(version(value).ok_or_else(|| wrong("expected 7.0 or the like"))?)
                }
                (key, value) => config.set(key, value).map_err(|reason| wrong(&reason))?,
            }
        }
        config.ptx = ptx.unwrap_or_else(|| ptx_of_driver(config.driver));
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "devices" => self.devices = number(value)?,
            "cc" => {
                self.compute_capability = number(value)?;
                if ![75, 80, 90].contains(&self.compute_capability) {
                    return Err("compute capability is 75, 80 or 90".into());
                }
            }
            "memory" => self.memory = bytes(value)?,
            "multiprocessors" => self.multiprocessors = number(value)?,
            "tensor" => self.tensor = Some(number::<u32>(value)?.max(1)),
            "driver" => {
                let (major, minor) = version(value).ok_or("expected 12.4 or the like")?;
                self.driver = (major * 1000 + minor * 10) as i32;
            }
            "absent" => self.absent.extend(value.split('+').map(str::to_string)),
            "fail" => self.failures.push(failure(value)?),
            "fault" => self.faults.push(kernel_fault(value)?),
            "slow" => {
                let (kernel, milliseconds) = value.split_once(':').ok_or("expected kernel:milliseconds")?;
                self.slow.insert(kernel.to_string(), number(milliseconds)?);
            }
            "schedule" => {
                self.schedule = match value {
                    "lazy" => Schedule::Lazy,
                    "eager" => Schedule::Eager,
                    _ => return Err("schedule is lazy or eager".into()),
                }
            }
            "queue" => self.queue = number::<usize>(value)?.max(1),
            "checks" => self.off = checkers(value)?,
            "exit-leaks" => self.exit_leaks = switch(value)?,
            "recover" => self.recover = switch(value)?,
            "global-races" => self.global_races = switch(value)?,
            "run" => self.run = switch(value)?,
            _ => return Err("unknown key".into()),
        }
        Ok(())
    }

    /// Whether that checker is on.
    pub fn checks(&self, name: &str) -> bool {
        !self.off.iter().any(|off| off == name)
    }

    /// Milliseconds that a launch of the kernel takes longer.
    pub fn delay(&self, kernel: &str) -> u64 {
        self.slow.get(kernel).or_else(|| self.slow.get("*")).copied().unwrap_or(0)
    }
}

/// The failure that stands for a configuration that cannot be read: nothing works.
pub fn failure_of_start() -> Failure {
    Failure { symbol: "cuInit".to_string(), turn: Turn::From(1), status: super::status::UNKNOWN }
}

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("'{value}' is not a number"))
}

fn bytes(value: &str) -> Result<usize, String> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units.iter().find(|(unit, _)| value.ends_with(*unit));
    let digits = unit.map_or(value, |(unit, _)| value.trim_end_matches(*unit));
    let count: usize = number(digits)?;
    count.checked_mul(1 << unit.map_or(0, |(_, shift)| *shift)).ok_or_else(|| "too large".into())
}

fn version(value: &str) -> Option<(u32, u32)> {
    let (major, minor) = value.split_once('.').unwrap_or((value, "0"));
    match (major.parse().ok()?, minor.parse().ok()?) {
        (number @ 1000.., 0) => Some((number / 1000, number % 1000 / 10)),
        pair => Some(pair),
    }
}

fn turn(value: Option<&str>, otherwise: Turn) -> Result<Turn, String> {
    match value {
        None => Ok(otherwise),
        Some("*") => Ok(Turn::From(1)),
        Some(text) => match text.strip_suffix('+') {
            Some(first) => number(first).map(Turn::From),
            None => number(text).map(Turn::Nth),
        },
    }
}

fn failure(value: &str) -> Result<Failure, String> {
    let parts: Vec<&str> = value.split(':').collect();
    let [symbol, which, status] = parts[..] else { return Err("expected function:turn:code".into()) };
    if !super::abi::SYMBOLS.contains(&symbol) {
        return Err(format!("no function '{symbol}' is exported"));
    }
    let turn = turn(Some(which), Turn::Nth(1))?;
    Ok(Failure { symbol: symbol.to_string(), turn, status: number(status)? })
}

fn kernel_fault(value: &str) -> Result<KernelFault, String> {
    let mut parts = value.split(':');
    let (Some(kernel), Some(status)) = (parts.next(), parts.next()) else {
        return Err("expected kernel:code or kernel:code:turn".into());
    };
    let turn = turn(parts.next(), Turn::Nth(1))?;
    Ok(KernelFault { kernel: kernel.to_string(), status: number(status)?, turn })
}

/// The checkers that `all`, `none`, `a+b` (only these) or `-a-b` (all but these) leaves off.
fn checkers(value: &str) -> Result<Vec<String>, String> {
    let (listed, wanted) = match value {
        "all" => (Vec::new(), false),
        "none" => (Vec::new(), true),
        _ => match value.strip_prefix('-') {
            Some(names) => (names.split('-').collect(), false),
            None => (value.split('+').collect::<Vec<_>>(), true),
        },
    };
    if let Some(unknown) = listed.iter().find(|name| !CHECKERS.contains(name)) {
        return Err(format!("no checker '{unknown}'; there are {}", CHECKERS.join(", ")));
    }
    Ok(CHECKERS.iter().filter(|name| listed.contains(name) != wanted).map(|name| name.to_string()).collect())
}

/// Newest PTX version that a driver of that CUDA version takes.
fn ptx_of_driver(driver: i32) -> (u32, u32) {
    let (major, minor) = ((driver / 1000) as u32, (driver % 1000 / 10) as u32);
    match major {
        ..10 => (6, 0),
        10 => (6, 3 + minor.min(2)),
        11 => (7, minor.min(8)),
        12 => (8, if minor >= 6 { minor - 1 } else { minor }),
        _ => (9, minor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read() {
        let text = "cc=75, memory=256M\ndevices=2 # two\nfail=cuMemAlloc_v2:3:2,fault=relu_f32:700,slow=*:5,driver=12.8";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.compute_capability, config.memory, config.devices), (75, 256 << 20, 2));
        assert_eq!((config.driver, config.ptx), (12080, (8, 7)));
        let failure = Failure { symbol: "cuMemAlloc_v2".into(), turn: Turn::Nth(3), status: 2 };
        assert_eq!(config.failures, [failure]);
        assert_eq!(config.faults[0].turn, Turn::Nth(1));
        assert_eq!(config.delay("anything"), 5);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("cc=61", "75, 80 or 90"),
            ("colour=red", "unknown key"),
            ("memory=much", "much"),
            ("cc", "key=value"),
            ("fail=cuNothing:1:2", "cuNothing"),
            ("checks=everything", "everything"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn turns() {
        let config = Config::parse("fail=cuInit:*:100,fail=cuMemAlloc_v2:2+:2").unwrap();
        assert!(config.failures[0].turn.is(1) && config.failures[0].turn.is(9));
        assert!(!config.failures[1].turn.is(1) && config.failures[1].turn.is(2));
    }

    #[test]
    fn checkers_by_name() {
        assert!(Config::parse("checks=all").unwrap().checks("races"));
        assert!(!Config::parse("checks=none").unwrap().checks("races"));
        let some = Config::parse("checks=-source-leaks").unwrap();
        assert!(some.checks("host") && !some.checks("source") && !some.checks("leaks"));
        let only = Config::parse("checks=races").unwrap();
        assert!(only.checks("races") && !only.checks("host"));
    }
}
