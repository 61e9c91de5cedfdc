// levels: sm_75
// The float64 kernels of elementwise.cu.
#define ELEMENT double
#define DTYPE f64
#include "elementwise.cu"
