// A register tile that is one vector too large makes the compiler keep some of it in
// memory: each step then stores and loads what it should only add to, 2 to 6 times
// slower, and nothing else tells. So the machine code is read back. A jump backwards is a
// loop; the innermost ones with many vector multiplications are those that decide a
// kernel's time; there no vector may come from the stack frame.
//
// Values that were moved to memory once, before the loop, and are operands in it count as
// well: a load for every use. Scalars do not: a row's address in memory costs nothing
// beside a row's multiplications.
#include "compiler/toolchain/spills.h"

#include "compiler/support/bytes.h"
#include "compiler/toolchain/guarded.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace svod::toolchain {

namespace {

// Fewer multiplications than this are an epilogue, or not worth a register.
constexpr uint64_t kManyProducts = 8;

struct Instruction {
  uint64_t at = 0;
  uint64_t target = UINT64_MAX; // of a jump
  bool product = false, stack_vector = false;
};

// What decodes instructions of x86-64; made anew for every object, since it is cheap and
// objects come from many threads.
class Decoder {
public:
  explicit Decoder(const std::string& triple);
  std::vector<Instruction> read(llvm::ArrayRef<uint8_t> code) const;

private:
  Instruction describe(const llvm::MCInst& inst, uint64_t at, uint64_t size) const;

  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> assembly_;
  std::unique_ptr<llvm::MCSubtargetInfo> features_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
};

Decoder::Decoder(const std::string& triple) {
  initialize_llvm();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return;
  registers_.reset(target->createMCRegInfo(triple));
  assembly_.reset(target->createMCAsmInfo(*registers_, triple, llvm::MCTargetOptions()));
  features_.reset(target->createMCSubtargetInfo(triple, "", ""));
  instructions_.reset(target->createMCInstrInfo());
  analysis_.reset(target->createMCInstrAnalysis(instructions_.get()));
  context_ = std::make_unique<llvm::MCContext>(llvm::Triple(triple), assembly_.get(),
                                               registers_.get(), features_.get());
  decoder_.reset(target->createMCDisassembler(*features_, *context_));
}

Instruction Decoder::describe(const llvm::MCInst& inst, uint64_t at,
                              uint64_t size) const {
  Instruction out{at};
  const llvm::MCInstrDesc& about = instructions_->get(inst.getOpcode());
  if (about.isBranch() && analysis_->evaluateBranch(inst, at, size, out.target))
    return out;
  const llvm::StringRef name = instructions_->getName(inst.getOpcode());
  bool vector = false, stack = false;
  for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
    if (!inst.getOperand(i).isReg() || inst.getOperand(i).getReg() == 0) continue;
    const llvm::StringRef reg = registers_->getName(inst.getOperand(i).getReg());
    vector |= reg.starts_with("XMM") || reg.starts_with("YMM") || reg.starts_with("ZMM");
    const bool address = i < about.getNumOperands() &&
                         about.operands()[i].OperandType == llvm::MCOI::OPERAND_MEMORY;
    stack |= address && reg == "RSP";
  }
  out.product = vector && (name.contains("FMADD") || name.contains("FNMADD") ||
                           name.contains("MULPS") || name.contains("DPBUSD") ||
                           name.contains("PMADDWD"));
  out.stack_vector = vector && stack && (about.mayLoad() || about.mayStore());
  return out;
}

std::vector<Instruction> Decoder::read(llvm::ArrayRef<uint8_t> code) const {
  std::vector<Instruction> out;
  for (uint64_t at = 0; decoder_ != nullptr && at < code.size();) {
    llvm::MCInst inst;
    uint64_t size = 0;
    const auto status =
        decoder_->getInstruction(inst, size, code.slice(at), at, llvm::nulls());
    if (status == llvm::MCDisassembler::Success) out.push_back(describe(inst, at, size));
    at += std::max<uint64_t>(size, 1);
  }
  return out;
}

// The instructions of each innermost loop, its jump included.
std::vector<std::span<const Instruction>>
innermost_loops(const std::vector<Instruction>& code) {
  std::vector<std::pair<size_t, size_t>> loops; // first, one past the jump
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].target > code[i].at) continue;
    const auto first =
        std::ranges::lower_bound(code, code[i].target, {}, &Instruction::at);
    loops.emplace_back(first - code.begin(), i + 1);
  }
  std::vector<std::span<const Instruction>> out;
  for (auto [first, end] : loops) {
    const bool innermost = std::ranges::none_of(loops, [&](const auto& other) {
      return other.first >= first && other.second < end;
    });
    if (innermost) out.push_back(std::span(code).subspan(first, end - first));
  }
  return out;
}

} // namespace

SpillFacts spill_facts(const Target& target, std::span<const std::byte> object) {
  SpillFacts facts;
  if (!target.is_x86()) return facts;
  const Decoder decoder(target.triple);
  const llvm::StringRef bytes = text_of(object);
  auto file = llvm::object::ObjectFile::createELFObjectFile({bytes, "object"});
  if (!file) {
    llvm::consumeError(file.takeError());
    return facts;
  }
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    if (!section.isText()) continue;
    auto content = section.getContents();
    if (!content) {
      llvm::consumeError(content.takeError());
      continue;
    }
    const auto code = decoder.read(llvm::arrayRefFromStringRef(*content));
    for (std::span<const Instruction> loop : innermost_loops(code)) {
      const auto products =
          uint64_t(std::ranges::count(loop, true, &Instruction::product));
      const auto accesses =
          uint64_t(std::ranges::count(loop, true, &Instruction::stack_vector));
      if (products < kManyProducts) continue;
      ++facts.loops;
      if (accesses == 0) continue;
      ++facts.spilling;
      facts.accesses += accesses;
      facts.products += products;
    }
  }
  return facts;
}

} // namespace svod::toolchain
