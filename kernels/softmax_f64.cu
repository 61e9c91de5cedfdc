// levels: sm_75
// The float64 kernels of softmax.cu, a module of their own so that float32 work need not wait for them to load.
#define WW_FLOAT64
#include "softmax.cu"
