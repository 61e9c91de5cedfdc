declare global {
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
}

/** Element types of tensors, by their ONNX names. */
export type DataType =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'bfloat16'
  | 'int64'
  | 'int32'
  | 'int16'
  | 'int8'
  | 'uint64'
  | 'uint32'
  | 'uint16'
  | 'uint8'
  | 'bool';

/** The engine's Float16Array (Node.js 24 has it), where the compiler's library knows it. */
export type Float16 = typeof globalThis extends { Float16Array: { prototype: infer A } } ? A : never;

/**
 * Typed arrays that hold elements. float16 is numbers in a Float16Array or bits in a Uint16Array, bfloat16 bits in a
 * Uint16Array, bool 0 or 1 in a Uint8Array.
 */
export type TypedArray =
  | Float16
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** 'cpu', 'cuda' (the first GPU), 'cuda:N', or 'auto': the first GPU where there is one, else the CPU. */
export type Device = 'cpu' | 'cuda' | 'auto' | `cuda:${number}`;

/** What an op takes: elements without a shape, or a tensor. A Uint16Array holds bits, of the type that `type` names. */
export type Operand = Float32Array | Float64Array | Float16 | Uint16Array | Tensor;

/** What an op without forms for 16 bits takes. */
export type WideOperand = Float32Array | Float64Array | Tensor;

/** Indices: whole numbers of 32 or 64 bits. */
export type IndexOperand = BigInt64Array | Int32Array | Tensor;

/** Truth: bytes, of which 0 alone is false. */
export type BoolOperand = Uint8Array | Tensor;

/** Whole numbers. */
export type WholeOperand =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Tensor;

/** An op gives a Tensor when any operand was one, else the typed array of its operands' type. */
export type Result<O> = [Extract<O, Tensor>] extends [never] ? O : Tensor;

/** The result of an op whose options may name its element type. */
export type TypedResult<O, T extends DataType> = [T] extends [never]
  ? Result<O>
  : [Extract<O, Tensor>] extends [never]
    ? ArrayOf<T>
    : Tensor;

/** Options of every op. */
export interface CallOptions {
  /**
   * Shapes of operands given as typed arrays: one list per operand in order, or, for a lone operand, its shape
   * directly. Without it a typed array has the shape `[length]`.
   */
  dims?: readonly number[] | readonly (readonly number[] | null | undefined)[];
  /** Where to run. Default 'auto'; an operand on a GPU decides. */
  device?: Device;
  /** How exact float32 products are. Default 'highest'. */
  precision?: 'highest' | 'high' | 'medium' | 'strict';
  /** Aborting rejects the call with ABORTED; work that has not started never starts. */
  signal?: AbortSignal;
  /** Take the operands' buffers over (they become detached) instead of copying them. Default false. */
  transfer?: boolean;
  /** Element type of operands given as typed arrays, where their class does not say it: bits, or bool. */
  type?: DataType;
}

/** Options of an op whose operands have names. */
export type NamedCallOptions = Omit<CallOptions, 'dims'> & {
  /** Shapes of operands given as typed arrays, by their names. Without it a typed array has the shape `[length]`. */
  dims?: { readonly [name: string]: readonly number[] | null | undefined };
};

/** Codes of [the errors page](docs/errors.md). */
export type ErrorCode =
  | 'CODES';

/** The error of every failure of this package. */
export class WarpwrightError extends Error {
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown });
  readonly name: 'WarpwrightError';
  /** Stable code. */
  readonly code: ErrorCode;
}

/** An element type, dims and data on the host or on a GPU. */
export class Tensor {
  /** Dims default to `[data.length]`. */
  constructor(type: DataType, data: TypedArray | Uint8ClampedArray | readonly (number | bigint | boolean)[], dims?: readonly number[]);
  /** The element type follows from the data: plain numbers are float32, bigints int64, booleans bool. */
  constructor(data: TypedArray | Uint8ClampedArray | readonly number[] | readonly bigint[] | readonly boolean[], dims?: readonly number[]);
  /** Element type. */
  readonly type: DataType;
  /** Dims, outermost first; assigning others reshapes in place. */
  dims: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** Where the data is. */
  readonly location: 'cpu' | `cuda:${number}`;
  /** The elements of a host tensor, not a copy. Throws INVALID_ARGUMENT when they are on a GPU. */
  readonly data: TypedArray;
  /** The elements, copied from the GPU when they are there; into `into`, an array of allocPinned, when given. */
  getData(options?: { into?: TypedArray; signal?: AbortSignal }): Promise<TypedArray>;
  /** A copy on that device, in that element type (as `cast` converts), or both; the tensor's own data when nothing changes. */
  to(
    target: Device | DataType | { type?: DataType; device?: Device },
    options?: { signal?: AbortSignal; transfer?: boolean },
  ): Promise<Tensor>;
  /** The same elements under other dims of the same product; shares the data. */
  reshape(dims: readonly number[]): Tensor;
  /** Frees the data. Twice is nothing; use afterwards throws DISPOSED. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** A device of this machine. */
export interface DeviceInfo {
  id: 'cpu' | `cuda:${number}`;
  kind: 'cpu' | 'cuda';
  /** Product name. */
  name: string;
  /** "9.0" and the like; GPUs only. */
  computeCapability?: string;
  /** GPUs only. */
  multiprocessors?: number;
  /** 32 hexadecimal digits; GPUs only. */
  uuid?: string;
  /** Compute threads; the CPU only. */
  threads?: number;
  /** Bytes. */
  totalMemory: number;
  /** Bytes; for a GPU known once it is in use. */
  freeMemory?: number;
}

/** Every GPU, then the CPU. Never throws; creates no context. */
export function devices(): DeviceInfo[];

/** What gpuStatus() answers. */
export interface GpuStatus {
  /** Whether 'cuda' works. */
  available: boolean;
  /** Error code when it does not. */
  code?: ErrorCode;
  /** What is missing, in words, when it does not. */
  reason?: string;
  /** Driver library that was opened. */
  library?: string;
  /** Driver release, like "550.54.14". */
  driverVersion?: string;
  /** CUDA version that the driver offers, like "12.4". */
  cudaVersion?: string;
}

/** Whether a GPU can be used, and if not why. Never throws; creates no context. */
export function gpuStatus(): GpuStatus;

/** Opens a device off the JavaScript thread. memoryLimit: bytes that its tensors may take, 0 for no limit. */
export function init(device?: Device, options?: { memoryLimit?: number }): Promise<void>;

/** Memory figures in bytes. */
export interface MemoryStats {
  /** In tensors and intermediate values. */
  used: number;
  /** Kept for reuse. */
  cached: number;
  /** Highest `used` so far. */
  peak: number;
  /** The limit, 0 for none. */
  limit: number;
  /** Number of blocks in use. */
  allocations: number;
  /** Part of `used`: what is kept with tensors that were operands more than once, and goes where memory runs short. */
  prepared: number;
}

/** Memory figures of a device; zeros for a GPU that is not in use yet. Default 'auto'. */
export function memoryStats(device?: Device): MemoryStats;

/** Returns unused memory of a device to the driver. Default 'auto'. */
export function trimMemory(device?: Device): void;

/** The typed array of an element type; of float16 the engine's Float16Array, or bits where it has none. */
export type ArrayOf<T extends DataType> = T extends 'float32'
  ? Float32Array
  : T extends 'float64'
    ? Float64Array
    : T extends 'int64'
      ? BigInt64Array
      : T extends 'uint64'
        ? BigUint64Array
        : T extends 'int32'
          ? Int32Array
          : T extends 'uint32'
            ? Uint32Array
            : T extends 'int16'
              ? Int16Array
              : T extends 'int8'
                ? Int8Array
                : T extends 'uint8' | 'bool'
                  ? Uint8Array
                  : T extends 'float16'
                    ? Float16 | Uint16Array
                    : Uint16Array;

/**
 * A zeroed typed array over page-locked, 256-byte aligned memory, which a GPU reads and writes without a copy; plain
 * memory where there is no GPU. Leave it unchanged while a call uses it. Its buffer cannot be transferred.
 */
export function allocPinned<T extends DataType>(type: T, length: number): ArrayOf<T>;

/** Rules of aggregation. */
export type AggregateRule = 'RULES';

/** What may be made of the rows before a rule sees them. */
export type PreAggregation = 'PRES';

/** Options of aggregate. */
export interface AggregateOptions {
  /** The rule. */
  rule: AggregateRule;
  /** Pre-aggregations, in order. */
  pre?: PreAggregation | readonly PreAggregation[];
  // AGGREGATE OPTIONS
  /** Dims of rows given as one typed array: [n, d] or more. */
  dims?: readonly number[];
  /** Where to run. Default 'auto'. */
  device?: Device;
  /** Aborting rejects with ABORTED. */
  signal?: AbortSignal;
  /** Take the buffers of plain rows over (they become detached) instead of copying them. Default false. */
  transfer?: boolean;
  /** Array or Tensor on the host to write the result to, which the call then resolves with. */
  out?: Float32Array | Float64Array | Tensor;
  /** centeredClipping: the point that it starts from, as large as a row; zeros when left out. */
  start?: Float32Array | Float64Array | Tensor;
  /** Called now and then with the part that is done, and with 1 at the end. */
  onProgress?: (done: number) => void;
}

/** Options of aggregate that ask for a report. */
export interface AggregateReportOptions extends AggregateOptions {
  /** Resolve with { result, report } instead of the result. Default false. */
  report: true;
}

/** What an aggregation did, in numbers of rows as they came; of buckets where `buckets` is there. */
export interface AggregationReport {
  rule: AggregateRule;
  /** Rows given. */
  n: number;
  /** Hostile rows reckoned with among those that took part. */
  f: number;
  /** Rows with NaN or infinities, each with its lowest such coordinate. */
  nonFinite: { row: number; coordinate: number }[];
  /** Rows that the NaN policy took out. */
  dropped: number[];
  /** Rows of each bucket; for pre 'bucketing'. */
  buckets?: number[][];
  /** Rows chosen, in the order of choice; for rules that choose. */
  chosen?: number[];
  /** Rows that took part and were not chosen. */
  rejected?: number[];
  /** The scores that rows were chosen by, lower is better; NaN for rows that took no part. */
  scores?: number[];
  /** Weight of each row in the result; for geometricMedian and centeredClipping. */
  weights?: number[];
  /** Steps taken; for geometricMedian and centeredClipping. */
  steps?: number;
  /** Coordinates of the result that are NaN. */
  nanCoordinates: number;
  /** What the caller should know. */
  notes: string[];
}

/**
 * One vector from the rows of many workers, of which some may be hostile: one array with `dims` [n, d], a Tensor [n, ...], or
 * a list of n arrays or Tensors. Gives a Tensor when a row was one, else a typed array.
 */
export function aggregate<R extends Float32Array | Float64Array | Tensor>(
  rows: R | readonly R[],
  options: AggregateReportOptions,
): Promise<{ result: Result<R>; report: AggregationReport }>;
export function aggregate<R extends Float32Array | Float64Array | Tensor>(
  rows: R | readonly R[],
  options: AggregateOptions & { report?: false },
): Promise<Result<R>>;

/** What a model says of an input or output. */
export interface ValueMetadata {
  readonly name: string;
  readonly isTensor: true;
  readonly type: DataType;
  /** Numbers, names of dims that are open, and '' for those without a name. */
  readonly shape: readonly (number | string)[];
}

/** A file that a model refers to. */
export interface ExternalFile {
  /** Name that the model calls it by. */
  path: string;
  data: Uint8Array | ArrayBuffer;
}

/** An execution provider of onnxruntime, by name or with options. */
export type ExecutionProvider = string | { readonly name: string; readonly deviceId?: number; readonly [option: string]: unknown };

/** Options of InferenceSession.create. */
export interface SessionOptions {
  /** Where to run. Default 'auto'. With 'cuda' an operator that has no GPU form is an error. */
  device?: Device;
  /** Bytes of the model file at most. Default 2 GiB. */
  maxModelBytes?: number;
  /** Bytes of one tensor at most, stored or computed. Default 16 GiB. */
  maxTensorBytes?: number;
  /** Nodes at most. Default 100,000. */
  maxNodes?: number;
  /** Contents of files that the model refers to; a model given as bytes opens none. */
  externalData?: readonly ExternalFile[];
  /** Whether files beside the model may have several hard links, as caches that share equal files make them. Default false. */
  allowLinks?: boolean;
  /** Sizes of named dims, which feeds are held to. */
  freeDimensionOverrides?: { readonly [name: string]: number };
  /** Where results are wanted: 'cpu', or 'device' for where they were made. Default 'cpu', or 'device' where all feeds are on a GPU. */
  preferredOutputLocation?: 'cpu' | 'device' | 'cpu-pinned' | 'gpu-buffer';
  /** Aborting rejects with ABORTED. */
  signal?: AbortSignal;
  /** onnxruntime's word for the device; `device` comes first. */
  executionProviders?: readonly ExecutionProvider[];
  /** Ignored, as are the options below: they tune what another engine does. */
  intraOpNumThreads?: number;
  interOpNumThreads?: number;
  graphOptimizationLevel?: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
  enableCpuMemArena?: boolean;
  enableMemPattern?: boolean;
  executionMode?: 'sequential' | 'parallel';
  optimizedModelFilePath?: string;
  enableProfiling?: boolean;
  profileFilePrefix?: string;
  logId?: string;
  logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  logVerbosityLevel?: number;
  enableGraphCapture?: boolean;
  extra?: Record<string, unknown>;
}

/** Options of InferenceSession.run. */
export interface RunOptions {
  /** Aborting rejects with ABORTED; a run under way ends at its next step. */
  signal?: AbortSignal;
  /** Take the feeds' buffers over (they become detached) instead of copying them. Default false. */
  transfer?: boolean;
  /** As preferredOutputLocation of the session. */
  outputLocation?: 'cpu' | 'device';
  /** True rejects with ABORTED. */
  terminate?: boolean;
  /** Ignored, as are the options below. */
  tag?: string;
  logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  logVerbosityLevel?: number;
  extra?: Record<string, unknown>;
}

/** A step of a plan: the node that it comes from (of several that became one, the last), the operation, and where it runs. */
export interface Placement {
  node: string;
  op: string;
  device: 'cpu' | `cuda:${number}`;
}

/** Values by the names of inputs. A typed array will do where the model leaves at most one dim open. */
export type Feeds = { readonly [name: string]: Tensor | TypedArray };

/** Outputs wanted: their names, or Tensors to fill (null for a new one) by their names. */
export type Fetches = readonly string[] | { readonly [name: string]: Tensor | null };

/** A network ready to run: the shape of onnxruntime's session. */
export class InferenceSession {
  private constructor();
  /** Reads a model from the path of its file or from its bytes, off the JavaScript thread. */
  static create(model: string | URL | Uint8Array | ArrayBufferLike, options?: SessionOptions): Promise<InferenceSession>;
  static create(model: ArrayBufferLike, byteOffset: number, byteLength?: number, options?: SessionOptions): Promise<InferenceSession>;
  /** Names of the values that a run must give. */
  readonly inputNames: readonly string[];
  /** Names of the values that a run gives. */
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly ValueMetadata[];
  readonly outputMetadata: readonly ValueMetadata[];
  /** Where the session runs. */
  readonly device: 'cpu' | `cuda:${number}`;
  /** Runs the network. Runs may overlap. */
  run(feeds: Feeds, options?: RunOptions): Promise<{ [name: string]: Tensor }>;
  run(feeds: Feeds, fetches: Fetches | null | undefined, options?: RunOptions): Promise<{ [name: string]: Tensor }>;
  /** Where the steps of the latest run were placed, up to the first value that only a run could tell; empty before one. */
  readonly placement: readonly Placement[];
  /** Runs the network once and tells what each step took. The device is idle before each, so the sum is more than a run takes. */
  profile(feeds: Feeds, options?: { signal?: AbortSignal }): Promise<(Placement & { milliseconds: number })[]>;
  /** Lets the network go; runs in flight finish. Twice is nothing; a run afterwards rejects with DISPOSED. */
  release(): Promise<void>;
  /** The same, at once. */
  dispose(): void;
  [Symbol.dispose](): void;
}
