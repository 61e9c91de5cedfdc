'use strict';

const { WarpwrightError, invalid, describe } = require('./errors.js');

/**
 * Checks one shape and copies it.
 * @param {string} where
 * @param {unknown} dims
 * @returns {number[]}
 */
function checkDims(where, dims) {
  if (!Array.isArray(dims)) throw invalid(`${where}: dims must be an array of numbers, got ${describe(dims)}`);
  for (const dim of dims) {
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw invalid(`${where}: dims must be whole numbers from 0 on, got ${describe(dim)}`);
    }
  }
  return [...dims];
}

/**
 * Product of the dims.
 * @param {string} where
 * @param {readonly number[]} dims
 * @returns {number}
 */
function sizeOf(where, dims) {
  const size = dims.includes(0) ? 0 : dims.reduce((product, dim) => product * dim, 1);
  if (size > Number.MAX_SAFE_INTEGER) {
    throw new WarpwrightError('SHAPE_MISMATCH', `${where}: the product of dims [${dims.join(', ')}] is too large`);
  }
  return size;
}

/**
 * One shape per operand from the `dims` option; a lone operand may give its shape directly.
 * @param {string} where
 * @param {unknown} dims
 * @param {number} required number of required operands
 * @param {number} all number of operands
 * @returns {(number[] | undefined)[]}
 */
function shapeList(where, dims, required, all) {
  if (dims === undefined || dims === null) return [];
  if (!Array.isArray(dims)) throw invalid(`${where}: 'dims' must be a list of shapes, got ${describe(dims)}`);
  const flat = dims.every((item) => typeof item === 'number');
  if (flat && required === 1) return [checkDims(where, dims)];
  if (dims.length > all) throw invalid(`${where}: 'dims' gives ${dims.length} shapes for ${all} operands`);
  return dims.map((item) => (item === undefined || item === null ? undefined : checkDims(where, item)));
}

module.exports = { checkDims, sizeOf, shapeList };
