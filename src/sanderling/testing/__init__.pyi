from sanderling.models import RecordingModel as RecordingModel
from sanderling.models import ReplayModel as ReplayModel
from sanderling.models import ScriptedModel as ScriptedModel
from sanderling.models import ScriptedRequest as ScriptedRequest
