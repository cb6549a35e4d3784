"""Tables: the source of truth for datasets, hierarchies, jobs, models and keys; times are UTC seconds since 1970."""

from app.store.tables.access import AuditEntry, Idempotency, Key, SignIn
from app.store.tables.base import InWorkspace, Owned, Table
from app.store.tables.data import Dataset, DatasetVersion, Hierarchy, HierarchyNode, RetiredLabel
from app.store.tables.jobs import Checkpoint, Job, JobLogLine, JobTag, Slot, Step, Worker
from app.store.tables.models import (
    Alias,
    AnswerCount,
    Evaluation,
    EvaluationConfusion,
    EvaluationLabel,
    EvaluationMeasure,
    Feedback,
    Metric,
    Model,
    ModelVersion,
)
from app.store.tables.reviews import Review, ReviewOpinion, ReviewRow
from app.store.tables.rules import Rule, RuleRun
from app.store.tables.webhooks import Webhook, WebhookDelivery

__all__ = [
    "Alias",
    "AnswerCount",
    "AuditEntry",
    "Checkpoint",
    "Dataset",
    "DatasetVersion",
    "Evaluation",
    "EvaluationConfusion",
    "EvaluationLabel",
    "EvaluationMeasure",
    "Feedback",
    "Hierarchy",
    "HierarchyNode",
    "Idempotency",
    "InWorkspace",
    "Job",
    "JobLogLine",
    "JobTag",
    "Key",
    "Metric",
    "Model",
    "ModelVersion",
    "Owned",
    "RetiredLabel",
    "Review",
    "ReviewOpinion",
    "ReviewRow",
    "Rule",
    "RuleRun",
    "SignIn",
    "Slot",
    "Step",
    "Table",
    "Webhook",
    "WebhookDelivery",
    "Worker",
]
