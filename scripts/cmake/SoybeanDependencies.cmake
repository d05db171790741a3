# Finds what SoyBean builds on and mends what distributions' packages get wrong. Every dependency ends up as one target
# soybean::<name>, so that nothing else in the build needs to know where it came from.

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(soybean::mpi ALIAS MPI::MPI_CXX)

add_library(soybean_openmp INTERFACE)
target_link_libraries(soybean_openmp INTERFACE OpenMP::OpenMP_CXX)
target_compile_options(soybean_openmp INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${OpenMP_CXX_FLAGS}>)
add_library(soybean::openmp ALIAS soybean_openmp)

include(SoybeanKokkos)

# oneDNN. Debian's package file asks for OpenCL, which nothing here uses.
if(NOT SOYBEAN_CUDA)
  find_path(SOYBEAN_DNNL_INCLUDE dnnl.hpp PATH_SUFFIXES oneapi/dnnl REQUIRED)
  find_library(SOYBEAN_DNNL_LIBRARY dnnl REQUIRED)
  add_library(soybean_dnnl INTERFACE)
  target_include_directories(soybean_dnnl SYSTEM INTERFACE ${SOYBEAN_DNNL_INCLUDE})
  target_link_libraries(soybean_dnnl INTERFACE ${SOYBEAN_DNNL_LIBRARY})
  add_library(soybean::dnnl ALIAS soybean_dnnl)
endif()

# HDF5, parallel or serial: only serial calls are needed. 1.10.7 is the first that can leave files unlocked.
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 1.10.7 REQUIRED COMPONENTS C)
add_library(soybean_hdf5 INTERFACE)
target_include_directories(soybean_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_compile_definitions(soybean_hdf5 INTERFACE ${HDF5_DEFINITIONS})
target_link_libraries(soybean_hdf5 INTERFACE ${HDF5_LIBRARIES})
if(HDF5_IS_PARALLEL)
  target_link_libraries(soybean_hdf5 INTERFACE MPI::MPI_CXX)
endif()
add_library(soybean::hdf5 ALIAS soybean_hdf5)

# What the readers of data unpack and decode with. Debian's package file of libzip asks for its command line tools.
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
add_library(soybean::zlib ALIAS ZLIB::ZLIB)
add_library(soybean::jpeg ALIAS JPEG::JPEG)
add_library(soybean::png ALIAS PNG::PNG)
find_path(SOYBEAN_ZIP_INCLUDE zip.h REQUIRED)
find_library(SOYBEAN_ZIP_LIBRARY zip REQUIRED)
add_library(soybean_zip INTERFACE)
target_include_directories(soybean_zip SYSTEM INTERFACE ${SOYBEAN_ZIP_INCLUDE})
target_link_libraries(soybean_zip INTERFACE ${SOYBEAN_ZIP_LIBRARY})
add_library(soybean::zip ALIAS soybean_zip)

if(SOYBEAN_TESTS)
  find_package(GTest REQUIRED)
endif()
