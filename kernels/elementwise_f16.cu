// levels: sm_75 sm_80
// The float16 kernels of elementwise.cu.
#define WW_HALVES
#define ELEMENT WwHalf
#define DTYPE f16
#include "elementwise.cu"
