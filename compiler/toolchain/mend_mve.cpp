// MVE has no "0 > x": LLVM 19 turns it round into "x < 0" and takes the condition LT, as
// on Neon. But here a condition reads flags, and LT is true of what is unordered: a NaN
// passes for less than zero, and is neither equal nor unequal to itself (x != x becomes
// a comparison with zero, too). So comparisons that LLVM would turn round are written
// in another way before it chooses instructions: with the sign of x changed, or, where
// NaN itself is asked for, on its bits.
#include "compiler/toolchain/mend_mve.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Passes/PassBuilder.h>

namespace svod::toolchain {

namespace {

using llvm::FCmpInst;
using llvm::Value;

// Exponent of ones, and something behind it.
Value* is_nan(llvm::IRBuilder<>& build, Value* x) {
  auto* floats = llvm::cast<llvm::VectorType>(x->getType());
  llvm::Type* bits = llvm::VectorType::getInteger(floats);
  const llvm::fltSemantics& kind = floats->getElementType()->getFltSemantics();
  const llvm::APInt infinity = llvm::APFloat::getInf(kind).bitcastToAPInt();
  const llvm::APInt no_sign = llvm::APInt::getSignedMaxValue(infinity.getBitWidth());
  Value* magnitude = build.CreateAnd(build.CreateBitCast(x, bits),
                                     llvm::ConstantInt::get(bits, no_sign));
  return build.CreateICmpSGT(magnitude, llvm::ConstantInt::get(bits, infinity));
}

// The same truth about x and zero; null where LLVM is right.
Value* mended(llvm::IRBuilder<>& build, FCmpInst::Predicate asked, Value* x,
              Value* zero) {
  const auto opposite = [&](FCmpInst::Predicate with) {
    return build.CreateFCmp(with, build.CreateFNeg(x), zero);
  };
  switch (asked) {
  case FCmpInst::FCMP_OLT:
    return opposite(FCmpInst::FCMP_OGT);
  case FCmpInst::FCMP_OLE:
    return opposite(FCmpInst::FCMP_OGE);
  case FCmpInst::FCMP_UGE:
    return opposite(FCmpInst::FCMP_ULE);
  case FCmpInst::FCMP_UGT:
    return opposite(FCmpInst::FCMP_ULT);
  case FCmpInst::FCMP_ONE:
    return build.CreateOr(build.CreateFCmpOGT(x, zero), opposite(FCmpInst::FCMP_OGT));
  case FCmpInst::FCMP_UEQ:
    return build.CreateAnd(build.CreateFCmpULE(x, zero), opposite(FCmpInst::FCMP_ULE));
  case FCmpInst::FCMP_UNO:
    return is_nan(build, x);
  case FCmpInst::FCMP_ORD:
    return build.CreateNot(is_nan(build, x));
  default:
    return nullptr;
  }
}

// Integers made floats and scaled by a power of two are one instruction, into which LLVM
// 19 writes a wrong power in larger kernels (2^-11 for 2^-8 behind a softmax). A fence
// keeps the two apart.
bool keep_conversion_apart(llvm::Instruction& instruction) {
  if (instruction.getOpcode() != llvm::Instruction::FMul ||
      !instruction.getType()->isVectorTy())
    return false;
  bool changed = false;
  for (llvm::Use& operand : instruction.operands()) {
    auto* conversion = llvm::dyn_cast<llvm::CastInst>(operand.get());
    if (conversion == nullptr || (conversion->getOpcode() != llvm::Instruction::SIToFP &&
                                  conversion->getOpcode() != llvm::Instruction::UIToFP))
      continue;
    llvm::IRBuilder<> build(&instruction);
    operand.set(
        build.CreateUnaryIntrinsic(llvm::Intrinsic::arithmetic_fence, conversion));
    changed = true;
  }
  return changed;
}

struct MendMve : llvm::PassInfoMixin<MendMve> {
  static llvm::PreservedAnalyses run(llvm::Function& function,
                                     llvm::FunctionAnalysisManager&) {
    std::vector<FCmpInst*> compares;
    bool changed = false;
    for (llvm::Instruction& instruction :
         llvm::make_early_inc_range(llvm::instructions(function)))
      changed |= keep_conversion_apart(instruction);
    for (llvm::Instruction& instruction : llvm::instructions(function))
      if (auto* compare = llvm::dyn_cast<FCmpInst>(&instruction))
        if (compare->getType()->isVectorTy()) compares.push_back(compare);
    for (FCmpInst* compare : compares) {
      FCmpInst::Predicate asked = compare->getPredicate();
      Value *x = compare->getOperand(0), *zero = compare->getOperand(1);
      if (llvm::PatternMatch::match(x, llvm::PatternMatch::m_AnyZeroFP())) {
        std::swap(x, zero);
        asked = FCmpInst::getSwappedPredicate(asked);
      }
      const bool itself = x == zero; // unordered with itself: LLVM compares with zero
      if (!itself && !llvm::PatternMatch::match(zero, llvm::PatternMatch::m_AnyZeroFP()))
        continue;
      llvm::IRBuilder<> build(compare);
      Value* instead = mended(build, asked, x, zero);
      if (instead == nullptr) continue;
      compare->replaceAllUsesWith(instead);
      compare->eraseFromParent();
    }
    return compares.empty() && !changed ? llvm::PreservedAnalyses::all()
                                        : llvm::PreservedAnalyses::none();
  }
};

} // namespace

void mend_mve(llvm::PassBuilder& builder) {
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(MendMve()));
      });
}

} // namespace svod::toolchain
