"""Which models quantise, told by the names of operators in their bytes."""
import re

OPERATORS = re.compile(rb"QuantizeLinear|QLinear|ConvInteger|MatMulInteger|QGemm|QAttention|QOrdered")


def quantises(model):
    return OPERATORS.search(model.read_bytes()) is not None
