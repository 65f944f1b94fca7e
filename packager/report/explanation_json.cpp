#include "packager/report/explanation.h"
#include "packager/report/json.h"

namespace svod::packager {

namespace {

using explain::Account;
using explain::KernelAccount;
using explain::Verdict;

void write_traffic(JsonWriter& json, const IoProfile& profile) {
  constexpr const char* kLevels[] = {"first", "second", "last", "memory"};
  for (const bool reads : {true, false}) {
    json.key(reads ? "read" : "written").begin_object();
    for (size_t i = 0; i < kMemoryLevels; ++i)
      json.pair(kLevels[i], reads ? profile.traffic[i].read : profile.traffic[i].written);
    json.end_object();
  }
}

void write_profile(JsonWriter& json, const char* key, const IoProfile& profile) {
  json.key(key).begin_object();
  json.pair("launches", profile.launches).pair("syncs", profile.syncs);
  json.pair("host_bytes", profile.host_bytes);
  write_traffic(json, profile);
  json.end_object();
}

// Members of the object that is open.
void write_verdict(JsonWriter& json, const Verdict& v) {
  json.pair("kind", text_of(v.kind));
  json.key("gain_us").milliseconds(v.gain_ns / 1e3);
  json.key("evaluations").milliseconds(v.evaluations);
  json.key("fused").boolean(v.made);
  json.key("open").boolean(v.open);
  json.key("gate").boolean(v.gate);
}

void write_texts(JsonWriter& json, const char* key,
                 const std::vector<std::string>& texts) {
  json.key(key).begin_list();
  for (const std::string& text : texts) json.value(text);
  json.end_list();
}

void write_kernel(JsonWriter& json, const KernelAccount& k, bool open_sizes) {
  json.begin_object().pair("program", uint64_t{k.program});
  json.pair("launch", uint64_t{k.launch});
  write_texts(json, "nodes", k.nodes);
  json.pair("result", k.result).pair("layout", k.layout);
  write_texts(json, "algorithms", k.algorithms);
  json.key("takes_in").begin_list();
  for (size_t i = 0; i < k.taken_in.size(); ++i) {
    json.begin_object().pair("value", k.taken[i]);
    write_verdict(json, k.taken_in[i]);
    json.end_object();
  }
  json.end_list();
  json.key("ends").begin_object();
  json.pair("reason", name_of(k.reason)).pair("text", text_of(k.reason));
  json.key("readers").begin_list();
  for (uint32_t reader : k.readers) json.value(uint64_t{reader});
  json.end_list();
  if (k.border) {
    json.key("otherwise").begin_object();
    write_verdict(json, *k.border);
    json.end_object();
  }
  json.end_object();
  if (open_sizes) {
    json.key("run_ends").begin_list();
    for (const int64_t positions : k.run_ends) json.value(positions);
    json.end_list();
  }
  if (k.chain) json.pair("chain", uint64_t{*k.chain});
  write_traffic(json, k.profile);
  json.end_object();
}

void write_search(JsonWriter& json, const Account& account) {
  const CutSearch& s = account.search;
  json.key("search").begin_object();
  json.pair("stop_reason", text_of(s.end)).pair("candidates", uint64_t{s.candidates});
  json.pair("choices", uint64_t{s.choices}).pair("regions", uint64_t{s.regions});
  json.pair("refused_by_gate", uint64_t{s.refused});
  json.key("rules_us").milliseconds(s.before * 1e6);
  json.key("us").milliseconds(s.after * 1e6);
  json.key("taken").begin_list();
  for (const explain::CutAccount& cut : account.cuts) {
    json.begin_object();
    write_texts(json, "stored", cut.stored);
    write_texts(json, "inlined", cut.inlined);
    json.key("rules_us").milliseconds(cut.before * 1e6);
    json.key("us").milliseconds(cut.after * 1e6);
    if (cut.gate) {
      json.key("gate").begin_object().pair("agrees", cut.gate->agrees);
      json.key("saves_us").milliseconds(cut.gate->gain_ns / 1e3).end_object();
    }
    json.end_object();
  }
  json.end_list().end_object();
}

} // namespace

std::string explanation_json(const Account& account) {
  JsonWriter json;
  json.begin_object();
  write_profile(json, "run", account.run);
  write_profile(json, "unfused", account.unfused);
  json.key("saved_us").milliseconds(account.saved_ns / 1e3);
  json.pair("copies", account.copies.count).pair("copied_bytes", account.copies.bytes);
  const explain::Agreement a = explain::agreement_of(account);
  json.key("gate").begin_object();
  json.pair("fusions", uint64_t{a.fused})
      .pair("agrees_fusions", uint64_t{a.fused_by_gate});
  json.pair("stored", uint64_t{a.stored})
      .pair("agrees_stored", uint64_t{a.stored_by_gate});
  json.pair("missed", uint64_t{a.missed})
      .key("missed_us")
      .milliseconds(a.missed_ns / 1e3);
  json.end_object();
  json.key("kernels").begin_list();
  for (const KernelAccount& k : account.kernels)
    write_kernel(json, k, account.open_sizes);
  json.end_list();
  json.key("chains").begin_list();
  for (const explain::ChainAccount& c : account.chains) {
    json.begin_object().pair("first", uint64_t{c.first}).pair("count", uint64_t{c.count});
    json.pair("part_bytes", c.part_bytes).pair("whole_bytes", c.whole_bytes);
    write_verdict(json, c.verdict);
    json.end_object();
  }
  json.end_list();
  json.key("sequences").begin_list();
  for (const explain::SequenceAccount& s : account.sequences) {
    json.begin_object().pair("launch", uint64_t{s.launch});
    json.pair("launches", s.verdict.apart.launches);
    write_verdict(json, s.verdict);
    json.end_object();
  }
  json.end_list();
  write_search(json, account);
  json.end_object();
  return json.text();
}

} // namespace svod::packager
