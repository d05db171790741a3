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
add_library(soybean::openmp ALIAS OpenMP::OpenMP_CXX)

# Kokkos. Debian's 3.4 (libtrilinos-kokkos-dev) ships a package file whose target names an include directory that does
# not exist; a Kokkos >= 4 brings a Kokkos::kokkos that works.
find_package(Kokkos QUIET)
set(kokkos_works FALSE)
if(TARGET Kokkos::kokkos)
  set(kokkos_works TRUE)
  get_target_property(kokkos_includes Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
  foreach(directory IN LISTS kokkos_includes)
    if(IS_ABSOLUTE "${directory}" AND NOT EXISTS "${directory}")
      set(kokkos_works FALSE)
    endif()
  endforeach()
endif()
if(kokkos_works)
  add_library(soybean::kokkos ALIAS Kokkos::kokkos)
else()
  find_path(SOYBEAN_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos REQUIRED)
  find_library(SOYBEAN_KOKKOS_LIBRARY NAMES kokkoscore trilinos_kokkoscore REQUIRED)
  add_library(soybean_kokkos INTERFACE)
  target_include_directories(soybean_kokkos SYSTEM INTERFACE ${SOYBEAN_KOKKOS_INCLUDE})
  target_link_libraries(soybean_kokkos INTERFACE ${SOYBEAN_KOKKOS_LIBRARY} ${CMAKE_DL_LIBS})
  add_library(soybean::kokkos ALIAS soybean_kokkos)
endif()

# oneDNN. Debian's package file asks for OpenCL, which nothing here uses.
find_path(SOYBEAN_DNNL_INCLUDE dnnl.hpp PATH_SUFFIXES oneapi/dnnl REQUIRED)
find_library(SOYBEAN_DNNL_LIBRARY dnnl REQUIRED)
add_library(soybean_dnnl INTERFACE)
target_include_directories(soybean_dnnl SYSTEM INTERFACE ${SOYBEAN_DNNL_INCLUDE})
target_link_libraries(soybean_dnnl INTERFACE ${SOYBEAN_DNNL_LIBRARY})
add_library(soybean::dnnl ALIAS soybean_dnnl)

# HDF5, parallel or serial: only serial calls are needed.
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 REQUIRED COMPONENTS C)
add_library(soybean_hdf5 INTERFACE)
target_include_directories(soybean_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_compile_definitions(soybean_hdf5 INTERFACE ${HDF5_DEFINITIONS})
target_link_libraries(soybean_hdf5 INTERFACE ${HDF5_LIBRARIES})
if(HDF5_IS_PARALLEL)
  target_link_libraries(soybean_hdf5 INTERFACE MPI::MPI_CXX)
endif()
add_library(soybean::hdf5 ALIAS soybean_hdf5)

if(SOYBEAN_TESTS)
  find_package(GTest REQUIRED)
endif()
