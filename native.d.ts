/** Starts calls and settles them by calling `settle(id, failure, outputs)`. */
export declare class Bridge {
  /**
   * Checks a call without taking anything over. Says where it runs: 'cpu', 'cuda:N', or 'median' for the op of that name on a
   * GPU. `strict` wants what that op lacks: a report, progress, or a place for the result.
   */
  planAggregation(inputs: AggregateInputs, options: object, device: string, strict: boolean): string
  /** Takes the data of a call over and queues it on that device. The result stays there when `keep`. */
  aggregate(id: number, aggregation: NativeAggregation, inputs: AggregateInputs, options: object, how: AggregateHow): void
  /** A bridge for the calling environment. */
  constructor(settle: (id: number, failure: Failure | null, outputs: Output[] | null) => void)
  /** Keeps the process alive while calls are in flight. */
  refer(): void
  /** Lets the process end when nothing else keeps it. */
  unrefer(): void
  /** Checks a call, takes over its data and queues it. */
  start(id: number, op: string, device: string, inputs: Array<InputArg | undefined | null>, options: object, how: How): void
  /** Checks a call and its device without taking anything over or running it. */
  check(op: string, device: string, inputs: Array<InputArg | undefined | null>, options: object): void
  /** Copies a tensor to a device. */
  upload(id: number, device: string, input: InputArg, transfer: boolean): void
  /** Copies a device tensor to the host: to a new array, or into `into`, an array of `allocPinned`. */
  download(id: number, handle: DeviceTensor, into?: Uint8Array | undefined | null): void
  /** Opens a device, or waits for all that was submitted to it. */
  synchronize(id: number, device: string): void
  /** Gives a call up: if it has not started it never will. */
  cancel(id: number): void
  /** Reads a model from a path or from bytes, off the JavaScript thread. */
  openSession(id: number, session: NativeSession, source: string | Uint8Array, options: OpenOptions): void
  /** Queues a run. Inputs carry the names of feeds. Results stay on the GPU when `keep`. */
  runSession(id: number, session: NativeSession, inputs: Array<InputArg>, fetches: Array<number>, keep: boolean, transfer: boolean): void
  /** Queues a run whose steps are timed; `session.times` has them once it is settled. */
  profileSession(id: number, session: NativeSession, inputs: Array<InputArg>): void
}

/** A tensor in device memory. Freed by `dispose` or, as a safety net, by garbage collection. */
export declare class DeviceTensor {
  /** Frees the memory. A call in flight keeps it until it is done. Twice is nothing. */
  dispose(): void
  /** The same elements under other dims; shares the memory. */
  reshape(dims: Array<number>): DeviceTensor
  /** Where the tensor is: 'cuda:N'. */
  get location(): string
  /** Whether `dispose` was called. */
  get disposed(): boolean
}

/** An aggregation under way. */
export declare class NativeAggregation {
  /** One that was not started yet. */
  constructor()
  /** The part that is done, 0 to 1. */
  get progress(): number
  /** What it did, once it is done. */
  get report(): AggregationReport | null
}

/** A network that was read, or is being read. */
export declare class NativeSession {
  /** A session that is not open yet. */
  constructor()
  /** Values that a run must give. */
  get inputs(): Array<PortRow>
  /** Values that a run gives. */
  get outputs(): Array<PortRow>
  /** Where the session runs: 'cpu' or 'cuda:N'. */
  get device(): string
  /** Where the steps of the latest run were placed. */
  get placement(): Array<StepRow>
  /** What the steps of the latest profile took. */
  get times(): Array<StepRow>
  /** Lets the network go once the runs in flight are done. Twice is nothing. */
  release(): void
}

/** How an aggregation is run. */
export interface AggregateHow {
  /** The device. */
  device: string
  /** Whether plain arrays were taken over. */
  transfer: boolean
  /** Whether the report is wanted. */
  report: boolean
  /** Whether the result stays on the device. */
  keep: boolean
}

/** Rows and a starting point as JavaScript gives them. */
export interface AggregateInputs {
  /** One tensor [n, ...], or n tensors. */
  rows: Array<InputArg>
  /** Whether each row is a tensor of its own. */
  list: boolean
  /** The starting point. */
  start?: InputArg
}

/** The tables of aggregations. */
export declare function aggregateTable(): AggregateTable

/** All tables of aggregations. */
export interface AggregateTable {
  /** Rules. */
  rules: Array<RuleRow>
  /** Pre-aggregations. */
  pres: Array<RuleRow>
  /** Options of every rule. */
  common: Array<AttributeRow>
}

/** What an aggregation did, in numbers of rows as they came. */
export interface AggregationReport {
  /** The rule. */
  rule: string
  /** Rows given. */
  n: number
  /** Hostile rows reckoned with. */
  f: number
  /** Rows with NaN or infinities. */
  nonFinite: Array<NonFiniteRow>
  /** Rows that the NaN policy took out. */
  dropped: Array<number>
  /** Rows of each bucket. */
  buckets?: Array<Array<number>>
  /** Rows chosen. */
  chosen?: Array<number>
  /** Rows not chosen. */
  rejected?: Array<number>
  /** Scores. */
  scores?: Array<number>
  /** Weights. */
  weights?: Array<number>
  /** Steps. */
  steps?: number
  /** Coordinates of the result that are NaN. */
  nanCoordinates: number
  /** What the caller should know. */
  notes: Array<string>
}

/** A zeroed buffer over page-locked memory where there is a GPU, over plain memory elsewhere. */
export declare function allocPinned(bytes: number): Uint8Array

/** An option of an op. */
export interface AttributeRow {
  /** Name of the option. */
  name: string
  /** TypeScript type. */
  kind: string
  /** The default, written as JavaScript; absent when there is none. */
  defaultValue?: string
  /** Whether the option must be given. */
  required: boolean
  /** What it means. */
  doc: string
}

/** A device of this machine. */
export interface DeviceInfo {
  /** 'cpu' or 'cuda:N'. */
  id: string
  /** 'cpu' or 'cuda'. */
  kind: string
  /** Product name. */
  name: string
  /** "9.0" and the like; GPUs only. */
  computeCapability?: string
  /** GPUs only. */
  multiprocessors?: number
  /** 32 hexadecimal digits; GPUs only. */
  uuid?: string
  /** Compute threads; the CPU only. */
  threads?: number
  /** Bytes. */
  totalMemory: number
  /** Bytes; for a GPU known once it is in use. */
  freeMemory?: number
}

/** Every GPU, then the CPU. Never throws. */
export declare function devices(): Array<DeviceInfo>

/** One element type. */
export interface DtypeRow {
  /** Name, as `Tensor.type`. */
  name: string
  /** Bytes of one element. */
  size: number
  /** JavaScript class of the data. */
  array: string
}

/** The table of element types. */
export declare function dtypeTable(): Array<DtypeRow>

/** One error code. */
export interface ErrorRow {
  /** Stable upper-case name. */
  code: string
  /** Number in the C ABI. */
  number: number
  /** What it means. */
  meaning: string
}

/** The table of error codes. */
export declare function errorTable(): Array<ErrorRow>

/** A file that a model refers to. */
export interface ExternalFile {
  /** Name that the model calls it by. */
  path: string
  /** Its content. */
  data: Uint8Array
}

/** Error of a settled call. */
export interface Failure {
  /** Stable code. */
  code: string
  /** Text. */
  message: string
}

/** Whether a GPU can be used, and if not why. Never throws and creates no context. */
export declare function gpuStatus(): GpuStatus

/** Whether a GPU can be used, and if not why. */
export interface GpuStatus {
  /** Whether `cuda` works. */
  available: boolean
  /** Error code when not. */
  code?: string
  /** What is missing, in words, when not. */
  reason?: string
  /** Driver library that was opened. */
  library?: string
  /** Driver release as NVML reports it, like "550.54.14". */
  driverVersion?: string
  /** CUDA version that the driver offers, like "12.4". */
  cudaVersion?: string
}

/** How a call is run. */
export interface How {
  /** Whether plain arrays were taken over and are out of every script's reach. */
  transfer: boolean
  /** Time the call on the device so often instead of giving the result. */
  repeats?: number
  /** Runs that follow each other each time; 1 when left out. */
  runs?: number
}

/** One operand: bytes of a typed array or a device tensor, with its type and dims. */
export interface InputArg {
  /** Name in messages. */
  name: string
  /** Element type. */
  dtype: string
  /** Dims. */
  dims: Array<number>
  /** The elements' bytes. */
  bytes?: Uint8Array
  /** The device tensor instead. */
  handle?: DeviceTensor
}

/** One embedded kernel. */
export interface KernelRow {
  /** `op_dtype[_variant]`. */
  name: string
  /** The file under kernels/ that it comes from. */
  family: string
  /** Lowest compute capability that takes it, as 75, 80, 90. */
  level: number
  /** Whether only exactly that compute capability takes it. */
  exact: boolean
}

/** The table of embedded kernels; one that is there for several levels has a row for each. */
export declare function kernelTable(): Array<KernelRow>

/** Memory figures of a device; zeros for a GPU that is not in use yet. */
export declare function memoryStats(device: string): MemoryStats

/** Memory figures of a device in bytes. */
export interface MemoryStats {
  /** In tensors and intermediate values. */
  used: number
  /** Kept for reuse. */
  cached: number
  /** Highest `used` so far. */
  peak: number
  /** The limit, 0 for none. */
  limit: number
  /** Number of blocks in use. */
  allocations: number
  /** Part of `used`: forms of operands that were used more than once. */
  prepared: number
}

/** A row that is not finite. */
export interface NonFiniteRow {
  /** Its number. */
  row: number
  /** Its lowest coordinate that is not finite. */
  coordinate: number
}

/** How a session is made. */
export interface OpenOptions {
  /** 'cpu', 'cuda', 'cuda:N' or 'auto'. */
  device: string
  /** Bytes of the model file. */
  maxModelBytes?: number
  /** Bytes of one tensor. */
  maxTensorBytes?: number
  /** Nodes. */
  maxNodes?: number
  /** Bytes of device memory. */
  memoryLimit?: number
  /** Files that the model refers to. */
  externalData: Array<ExternalFile>
  /** Whether external files may have several hard links. */
  allowLinks: boolean
}

/** A tensor argument of an op. */
export interface OperandRow {
  /** Name in messages and, for optional ones, the option's name. */
  name: string
  /** Whether the call must give it. */
  required: boolean
  /** Whether it is a list of tensors. */
  list: boolean
  /** Whether that list has names: an object. */
  named: boolean
  /** Element types of its own; none where it shares the op's type. */
  dtypes: Array<string>
}

/** A row of the table of ONNX operators. */
export interface OperatorRow {
  /** Name in ONNX. */
  name: string
  /** Operator set; empty for ONNX's own. */
  domain: string
  /** The oldest version of the set in which it is read. */
  since: number
  /** The op that it becomes above all. */
  op?: string
  /** What runs on the host alone: nothing if absent, everything if empty. */
  host?: string
}

/** The ONNX operators that sessions know. */
export declare function operatorTable(): Array<OperatorRow>

/** One op of the op table. */
export interface OpRow {
  /** JavaScript name. */
  name: string
  /** Tensor arguments, required ones first. */
  operands: Array<OperandRow>
  /** Other options. */
  attributes: Array<AttributeRow>
  /** Element types taken. */
  dtypes: Array<string>
  /** Whether a call gives a list. */
  givesList: boolean
  /** Element type of the result where it is always the same. */
  resultType?: string
  /** The results of a list that always holds the same ones. */
  results: Array<ResultRow>
  /** Options that ask for more results than one. */
  moreBy: Array<string>
  /** Accuracy level. */
  tolerance: string
  /** What it computes. */
  doc: string
}

/** The op table. */
export declare function opTable(): Array<OpRow>

/** A result: bytes on the host or a tensor on a device. */
export interface Output {
  /** Element type. */
  dtype: string
  /** Dims. */
  dims: Array<number>
  /** The elements' bytes. */
  bytes?: Uint8Array
  /** The device tensor instead. */
  handle?: DeviceTensor
}

/** An input or output. */
export interface PortRow {
  /** Name in the model. */
  name: string
  /** Element type; absent where the model does not tell it. */
  dtype?: string
  /** Dims as numbers or names, an empty name for a dim without one; absent where the rank is open. */
  dims?: Array<number | string>
}

/** The device that a name stands for now, 'cpu' or 'cuda:N'. */
export declare function resolveDevice(device: string): string

/** One of several results of an op. */
export interface ResultRow {
  /** Its name. */
  name: string
  /** Its element type; the op's where there is none. */
  dtype?: string
}

/** A rule or a pre-aggregation. */
export interface RuleRow {
  /** Name. */
  name: string
  /** What it computes. */
  doc: string
  /** What must hold of n rows, f of them hostile; rules only. */
  bound?: string
  /** Whether it looks at rows as wholes; rules only. */
  whole?: boolean
  /** Options that must be given; of several in one text, one. */
  required: Array<string>
  /** Options of its own. */
  parameters: Array<AttributeRow>
}

/** Sets the limit in bytes on a GPU's tensors and intermediate values; 0 lifts it. */
export declare function setMemoryLimit(device: string, bytes: number): void

/** A step of a plan. */
export interface StepRow {
  /** The node that it comes from; of several that became one, the last. */
  node: string
  /** The op. */
  op: string
  /** Where it runs. */
  device: string
  /** What it took, where that was measured. */
  milliseconds?: number
}

/** Returns unused memory of a device to the driver, or of the CPU to the system. */
export declare function trimMemory(device: string): void

/** The package's version. */
export declare function version(): string
