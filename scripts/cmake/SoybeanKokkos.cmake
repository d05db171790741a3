# Kokkos, and the CUDA language where SOYBEAN_CUDA asks for it. Makes soybean::kokkos and, for the sources that include
# Kokkos, soybean_kokkos_sources(<files>...).
#
# Debian's 3.4 (libtrilinos-kokkos-dev) ships a package file whose target names an include directory that does not
# exist; a Kokkos >= 4 brings a Kokkos::kokkos that works.

set(Kokkos_LAUNCH_COMPILER OFF) # else a Kokkos with CUDA puts its compiler wrapper before every source there is
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

if(SOYBEAN_CUDA)
  set(kokkos_hint "Build one with -DKokkos_ENABLE_CUDA=ON and set Kokkos_ROOT to where it is installed")
  if(NOT kokkos_works)
    message(FATAL_ERROR "SOYBEAN_CUDA: no Kokkos found, expected one >= 4.6 with CUDA. ${kokkos_hint}")
  elseif(NOT Kokkos_ENABLE_CUDA)
    message(FATAL_ERROR "SOYBEAN_CUDA: got Kokkos ${Kokkos_VERSION} (${Kokkos_DIR}) without CUDA, expected one >= 4.6 "
                        "with it. ${kokkos_hint}")
  elseif(Kokkos_VERSION VERSION_LESS 4.6)
    message(FATAL_ERROR "SOYBEAN_CUDA: got Kokkos ${Kokkos_VERSION} (${Kokkos_DIR}), expected >= 4.6. ${kokkos_hint}")
  endif()
elseif(Kokkos_ENABLE_CUDA)
  message(FATAL_ERROR "Kokkos: got one with CUDA (${Kokkos_DIR}), which host compilers can not read. Configure with "
                      "-DSOYBEAN_CUDA=ON (cmake --preset cuda), or set Kokkos_ROOT to one without")
endif()

if(SOYBEAN_CUDA)
  # Kernels run on what Kokkos was built for.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "${Kokkos_CUDA_ARCHITECTURES}" CACHE STRING "Compute capabilities to compile for")
  endif()
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # the one that Kokkos, cuDNN and NCCL use
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  # Its flags are for its wrapper around nvcc; here the sources that include it are of language CUDA.
  foreach(part kokkos kokkoscore kokkoscontainers kokkosalgorithms kokkossimd)
    if(TARGET Kokkos::${part})
      set_target_properties(Kokkos::${part} PROPERTIES INTERFACE_COMPILE_OPTIONS "" INTERFACE_LINK_OPTIONS "")
    endif()
  endforeach()
  add_library(soybean::kokkos ALIAS Kokkos::kokkos)
elseif(kokkos_works)
  add_library(soybean::kokkos ALIAS Kokkos::kokkos)
else()
  find_path(SOYBEAN_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos REQUIRED)
  find_library(SOYBEAN_KOKKOS_LIBRARY NAMES kokkoscore trilinos_kokkoscore REQUIRED)
  add_library(soybean_kokkos INTERFACE)
  target_include_directories(soybean_kokkos SYSTEM INTERFACE ${SOYBEAN_KOKKOS_INCLUDE})
  target_link_libraries(soybean_kokkos INTERFACE ${SOYBEAN_KOKKOS_LIBRARY} ${CMAKE_DL_LIBS})
  add_library(soybean::kokkos ALIAS soybean_kokkos)
endif()

# soybean_kokkos_sources(<files>...)
# These include Kokkos: the compiler of its language builds them.
function(soybean_kokkos_sources)
  if(SOYBEAN_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()
