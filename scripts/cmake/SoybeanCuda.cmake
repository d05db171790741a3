# CUDA's libraries for the host code that calls them (src/device/cuda), which any C++ compiler builds: no nvcc here.
# Found: targets soybean::cudart, soybean::cublaslt, soybean::cudnn and soybean::nccl, and SOYBEAN_CUDA_HOST is TRUE.
# Tests may link stand-ins for the libraries instead: a program with the target property SOYBEAN_STANDINS gets them.

set(SOYBEAN_CHECK_CUDA OFF CACHE STRING
    "Build and test the CUDA host code without a CUDA compiler: OFF, ON, or AUTO (where CUDA's headers and libraries are)")
set_property(CACHE SOYBEAN_CHECK_CUDA PROPERTY STRINGS OFF ON AUTO)
# soybean_cuda_library(<name> LIBRARY file STANDIN target)
# soybean::<name>, an interface to the library or, in programs that ask for stand-ins, to `target`.
function(soybean_cuda_library name)
  cmake_parse_arguments(ARG "" "LIBRARY;STANDIN" "" ${ARGN})
  set(standin $<BOOL:$<TARGET_PROPERTY:SOYBEAN_STANDINS>>)
  add_library(soybean_${name} INTERFACE)
  target_include_directories(soybean_${name} SYSTEM INTERFACE ${SOYBEAN_CUDA_INCLUDES})
  target_link_libraries(soybean_${name} INTERFACE $<IF:${standin},${ARG_STANDIN},${ARG_LIBRARY}>)
  add_library(soybean::${name} ALIAS soybean_${name})
endfunction()

# Sets SOYBEAN_CUDA_HOST and makes the targets. REQUIRED: what is missing is an error.
macro(soybean_find_cuda)
  set(cuda_roots ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
  string(REPLACE ":" ";" cuda_includes "$ENV{CPATH}")
  string(REPLACE ":" ";" cuda_libraries "$ENV{LIBRARY_PATH};$ENV{LD_LIBRARY_PATH}")
  set(SOYBEAN_CUDA_HOST TRUE)
  set(SOYBEAN_CUDA_INCLUDES)
  set(cuda_missing)
  foreach(pair cudart=cuda_runtime_api.h cublasLt=cublasLt.h cudnn=cudnn.h nccl=nccl.h)
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 library)
    list(GET pair 1 header)
    find_path(SOYBEAN_${library}_INCLUDE ${header} HINTS ${cuda_roots} ${cuda_includes}
              PATH_SUFFIXES include targets/x86_64-linux/include)
    find_library(SOYBEAN_${library}_LIBRARY ${library} HINTS ${cuda_roots} ${cuda_libraries}
                 PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
    mark_as_advanced(SOYBEAN_${library}_INCLUDE SOYBEAN_${library}_LIBRARY)
    if(SOYBEAN_${library}_INCLUDE AND SOYBEAN_${library}_LIBRARY)
      list(APPEND SOYBEAN_CUDA_INCLUDES ${SOYBEAN_${library}_INCLUDE})
    else()
      set(SOYBEAN_CUDA_HOST FALSE)
      list(APPEND cuda_missing "${library} (${header})")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES SOYBEAN_CUDA_INCLUDES)
  if(SOYBEAN_CUDA_HOST)
    soybean_cuda_library(cudart LIBRARY ${SOYBEAN_cudart_LIBRARY} STANDIN soybean_standin_cuda)
    soybean_cuda_library(cublaslt LIBRARY ${SOYBEAN_cublasLt_LIBRARY} STANDIN soybean_standin_cuda)
    soybean_cuda_library(cudnn LIBRARY ${SOYBEAN_cudnn_LIBRARY} STANDIN soybean_standin_cuda)
    soybean_cuda_library(nccl LIBRARY ${SOYBEAN_nccl_LIBRARY} STANDIN soybean_standin_nccl)
  else()
    list(JOIN cuda_missing ", " cuda_missing)
  endif()
endmacro()

set(SOYBEAN_CUDA_HOST FALSE)
string(TOUPPER "${SOYBEAN_CHECK_CUDA}" check_cuda)
if(SOYBEAN_VENDOR STREQUAL "cuda" OR NOT check_cuda MATCHES "^(OFF|NO|FALSE|0|)$")
  soybean_find_cuda()
  if(NOT SOYBEAN_CUDA_HOST AND check_cuda STREQUAL "AUTO")
    message(STATUS "CUDA host code: not checked, there is no ${cuda_missing}")
  elseif(NOT SOYBEAN_CUDA_HOST)
    message(FATAL_ERROR "CUDA host code: there is no ${cuda_missing}. Set CUDAToolkit_ROOT, or CPATH and LIBRARY_PATH, "
                        "to where they are, or SOYBEAN_CHECK_CUDA=OFF")
  endif()
endif()
