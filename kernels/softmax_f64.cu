// levels: sm_75
// The float64 kernels of softmax.cu.
#define ELEMENT double
#define DTYPE f64
#include "softmax.cu"
