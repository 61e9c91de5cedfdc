// levels: sm_75
// The float64 kernels of broadcast.cu.
#define ELEMENT double
#define DTYPE f64
#include "broadcast.cu"
