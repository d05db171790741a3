#include "calibrate/measure_batch.hpp"

#include "base/error.hpp"
#include "calibrate/networks.hpp"
#include "calibrate/timing.hpp"
#include "data/loader.hpp"
#include "plan/planner.hpp"
#include "program/program.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace soybean::calibrate {
namespace {

data::Content content_of(graph::Role role) {
  return role == graph::Role::input   ? data::Content::inputs
         : role == graph::Role::label ? data::Content::labels
                                      : data::Content::weights;
}

/// A network of dense layers on this rank alone, trained as a run trains it but for its messages and records.
class Training {
public:
  Training(std::int64_t batch, std::int64_t width, const device::Exec& exec, comm::Comm& comm)
      : comm_(comm),
        graph_(dense_network(batch, width, DType::f32)),
        self_(comm::make_self_comm()),
        executor_(graph_, {program_of(graph_)}, {exec, *self_, {}, 0, false}),
        reader_(data::make_synthetic_reader({.sample = {width}, .train_samples = order_samples})),
        order_{order_samples, batch, 1, true},
        threads_(exec.threads()) {
    runtime::initialise_parameters(graph_, executor_, 1);
    for (const runtime::Block& block : executor_.fed()) {
      if (is_hyper(block)) continue;
      parts_.push_back({content_of(graph_.tensors[block.tensor].role), block.view.box, block.view.dtype});
      bytes_ += static_cast<double>(block.view.size() * size_of(block.view.dtype));
    }
  }

  BatchSample measure() {
    const double alone = seconds_of_step(nullptr);
    data::Loader loader(data::BatchSource::training(*reader_, options_, order_, threads_), parts_, 0, 2);
    return {bytes_, std::max(0.0, seconds_of_step(&loader) - alone)};
  }

private:
  static constexpr std::int64_t order_samples = 4096;

  static program::Program program_of(const graph::Graph& graph) {
    program::Program program = program::lower(graph, plan::make_plan(graph, {}, {}), program::Mode::train);
    program::run_passes(graph, program, {});
    return program;
  }

  bool is_hyper(const runtime::Block& block) const { return graph_.tensors[block.tensor].role == graph::Role::hyper; }

  double seconds_of_step(data::Loader* loader) {
    constexpr int warm_up = 20, steps = 150;
    std::vector<double> taken;
    for (int step = 0; step < warm_up + steps; ++step) {
      const double begin = now();
      if (loader != nullptr) feed(loader->next());
      executor_.run(0);
      executor_.metrics(0);
      const double slowest = comm::max(comm_, now() - begin); // ranks go on together, as in a run
      if (step >= warm_up) taken.push_back(slowest);
    }
    return median(std::move(taken));
  }

  void feed(const data::Batch& batch) {
    constexpr std::array<double, 4> hyper{0, 0, 1, 1}; // a rate of 0: the weights stay as they are
    std::size_t part = 0;
    for (const runtime::Block& block : executor_.fed())
      if (is_hyper(block)) {
        ensure(block.view.size() <= static_cast<std::int64_t>(hyper.size()), "few scalars");
        executor_.feed(block, hyper.data());
      } else {
        executor_.feed(block, batch.parts[part++].data());
      }
  }

  comm::Comm& comm_;
  graph::Graph graph_;
  std::unique_ptr<comm::Comm> self_;
  runtime::Executor executor_;
  std::unique_ptr<data::Reader> reader_;
  data::Order order_;
  config::DataOptions options_;
  int threads_;
  std::vector<data::Part> parts_;
  double bytes_ = 0;
};

} // namespace

std::vector<BatchSample> measure_batches(const device::Exec& exec, comm::Comm& comm) {
  return {Training(64, 64, exec, comm).measure(), Training(256, 256, exec, comm).measure()};
}

} // namespace soybean::calibrate
