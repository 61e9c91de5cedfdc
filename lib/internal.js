'use strict';

// For the tests, the benchmarks and the generators; not part of the public API.
const { TABLE: AGGREGATE, COMMON } = require('./aggregate.js');
const native = require('./load.js');
const { TABLE, timeOnDevice } = require('./ops.js');

module.exports = {
  opTable: () => TABLE,
  aggregateTable: () => AGGREGATE,
  aggregateOptions: () => COMMON,
  operatorTable: native.operatorTable,
  errorTable: native.errorTable,
  dtypeTable: native.dtypeTable,
  kernelTable: native.kernelTable,
  version: native.version,
  timeOnDevice,
};
