import * as warpwright from './index.js';

export * from './index.js';
export default warpwright;
