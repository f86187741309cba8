"""Running submitted code: the judge owns hidden data and the reward, the subject only what it is handed."""

from orrery_core.isolation.ground import Isolation
from orrery_core.isolation.model import Bind, Limits
from orrery_core.isolation.process import SubjectProcess

__all__ = ["Bind", "Isolation", "Limits", "SubjectProcess"]
