#include "plan/images.hpp"

#include <algorithm>

namespace soybean::plan {
namespace {

constexpr int first_image_dim = 2; // of what runs over samples: rows, then columns

bool splits_images(const Model& model, graph::TensorId id, const tiling::Tiling& tiling) {
  return model.batch_dim[id] >= 0 && std::any_of(tiling.begin(), tiling.end(), [](const tiling::Entry& e) {
           return e.kind == tiling::Kind::split && e.dim >= first_image_dim;
         });
}

bool may_split_images(const Model& model, std::size_t variable) {
  const ops::Form& form = model.forms[model.members[variable][0]];
  const std::vector<ops::Choice>& allowed = model.allowed[variable];
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](ops::Choice choice) { return choice >= 0 && form.indices[choice].spatial; });
}

bool has_few_samples(const Model& model, const tiling::Mesh& mesh) {
  const int ranks = tiling::ranks(mesh);
  for (std::size_t v = 0; v < model.members.size(); ++v) {
    const std::vector<ops::LoopIndex>& indices = model.forms[model.members[v][0]].indices;
    const bool few = std::any_of(indices.begin(), indices.end(),
                                 [&](const ops::LoopIndex& i) { return i.batch && i.count < ranks; });
    if (few && may_split_images(model, v)) return true;
  }
  return false;
}

Images by_samples(const Model& model, const tiling::Mesh& mesh) {
  constexpr int most_ranks_of_both = 8, most_ranks_of_rows = 64, most_nodes_of_both = 60;
  const int ranks = tiling::ranks(mesh);
  if (ranks > most_ranks_of_rows || !has_few_samples(model, mesh)) return Images::whole;
  int nodes = 0; // whose images may be split; twins once
  for (std::size_t v = 0; v < model.members.size(); ++v) nodes += may_split_images(model, v) ? 1 : 0;
  return ranks > most_ranks_of_both || nodes > most_nodes_of_both ? Images::rows : Images::rows_and_columns;
}

} // namespace

Images images_to_split(const Setting& setting) {
  for (const auto& [id, tiling] : setting.pins)
    if (splits_images(setting.model, id, tiling)) return Images::rows_and_columns;
  return by_samples(setting.model, setting.costs.mesh());
}

Images images_to_split(const Model& model, const Plan& plan) {
  for (std::size_t n = 0; n < plan.choices.size(); ++n)
    for (ops::Choice choice : plan.choices[n])
      if (choice >= 0 && model.forms[n].indices[choice].spatial) return Images::rows_and_columns;
  return by_samples(model, plan.mesh);
}

} // namespace soybean::plan
