from ._final_answer import FinalAnswerTool as FinalAnswerTool
from ._python_interpreter import PythonInterpreterTool as PythonInterpreterTool
from ._ready import TOOL_MAPPING as TOOL_MAPPING
