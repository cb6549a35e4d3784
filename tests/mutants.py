"""Deliberate faults, each of which a quick test must notice: ``python tests/mutants.py [NAME...]``.

Each fault is put into a copy of the code, alone, and the tests that are named with it are run there. A fault has
survived if they pass; it is broken if they cannot be run. Either makes the exit status 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2
# a fault may end in a loop without an end
MOST_SECONDS = 1800
PARTS = ("app", "migrations", "solvers", "tests", "workers", "pyproject.toml")
CAUGHT, SURVIVED, BROKEN = "caught", "SURVIVED", "BROKEN"


class Mutant(NamedTuple):
    """A fault: ``old``, which is once in ``file``, becomes ``new``; ``tests`` notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutant(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    """A mutant whose tests are given below ``tests/``."""
    return Mutant(name, file, old, new, tuple(f"tests/{test}" for test in tests))


LEASES, JOBS = "app/jobs/test_leases.py", "app/jobs/test_jobs_service.py"
DEVICE = "app/access/test_device_sign_ins.py"
OPENID, PROXIES = "app/access/test_openid.py", "app/access/test_proxy_sign_ins.py"
CONTRACT, ORACLES = "solvers/test_contract.py", "solvers/test_oracles.py"
SWEEPING, KEYS = "app/operation/test_sweep.py", "app/access/test_keys_service.py"

MUTANTS = (
    # who holds a job
    mutant(
        "a lost fence: any attempt may write",
        "app/jobs/leases.py",
        "J.attempt == lease.attempt, J.state.in_(",
        "J.state.in_(",
        f"{LEASES}::test_a_stale_holders_writes_hit_nothing",
    ),
    mutant(
        "an ended job takes writes",
        "app/jobs/leases.py",
        "J.state.in_(HELD_STATES)",
        "J.state.is_not(None)",
        f"{LEASES}::test_a_job_that_has_ended_takes_no_writes",
    ),
    mutant(
        "a job is claimed twice",
        "app/jobs/leases.py",
        '.where(J.id == job_id, J.state == "queued")\n            .values(\n',
        ".where(J.id == job_id)\n            .values(\n",
        f"{LEASES}::test_of_many_claims_at_once_one_wins",
    ),
    mutant(
        "steps behind the checkpoint stay",
        "app/jobs/leases.py",
        "tables.Step.number > func.coalesce(reached, -1)",
        "tables.Step.number > func.coalesce(reached, -1) + 1",
        f"{LEASES}::test_a_claim_removes_the_steps_that_the_checkpoint_has_not_seen",
    ),
    mutant(
        "steps written twice are kept twice",
        "app/jobs/leases.py",
        "tables.Step.number.in_(numbers)",
        "tables.Step.number.in_([])",
        f"{LEASES}::test_steps_written_twice_are_kept_once",
    ),
    mutant(
        "a sweep takes jobs within their lease",
        "app/operation/sweep.py",
        "J.lease_until < db_now())",
        "J.lease_until < db_now() + 86400.0)",
        f"{SWEEPING}::test_a_job_within_its_lease_is_left_alone",
    ),
    mutant(
        "a lost job that was being cancelled is queued again",
        "app/operation/sweep.py",
        'if row.state == "cancelling":',
        'if row.state == "never":',
        f"{SWEEPING}::test_a_lost_job_that_was_being_cancelled_is_cancelled",
    ),
    mutant(
        "a job may be lost forever",
        "app/operation/sweep.py",
        "elif losses >= most:",
        "elif losses - 10 >= most:",
        f"{SWEEPING}::test_a_job_that_is_lost_too_often_fails_and_may_be_retried",
    ),
    mutant(
        "files that no row names stay",
        "app/operation/sweep.py",
        "kept = named(session, present)",
        "kept = set(present)",
        f"{SWEEPING}::test_files_that_no_row_names_are_removed_and_no_others",
    ),
    mutant(
        "cancelling a running job does nothing",
        "app/jobs/service.py",
        '_set(session, id, state="cancelling")',
        "pass",
        f"{LEASES}::test_the_holder_learns_that_it_shall_cancel",
    ),
    mutant(
        "a running job may be tried again",
        "app/jobs/service.py",
        'if job.state not in {"failed", "cancelled"}:',
        "if False:",
        f"{LEASES}::test_an_ended_job_cannot_be_cancelled_and_a_running_one_not_retried",
    ),
    mutant(
        "jobs of all states are listed",
        "app/jobs/service.py",
        "if state is not None:",
        "if False:",
        f"{JOBS}::test_jobs_are_listed_by_state",
    ),
    mutant(
        "a gang takes fewer slots than shards",
        "app/jobs/slots.py",
        "if len(chosen) < size:",
        "if len(chosen) < 1:",
        "app/jobs/test_slots.py::test_a_job_takes_one_slot_in_each_pool_or_none",
    ),
    # who may do what
    mutant(
        "every key has every role",
        "app/access/authentication.py",
        "if _RANKS[principal.role] < _RANKS[role]:",
        "if False:",
        "app/access/test_auth.py::test_a_role_reaches_its_routes_and_those_of_lesser_roles_only",
    ),
    mutant(
        "a role does not reach its own routes",
        "app/access/authentication.py",
        "if _RANKS[principal.role] < _RANKS[role]:",
        "if _RANKS[principal.role] <= _RANKS[role]:",
        "app/access/test_auth.py::test_a_viewer_reads_and_predicts",
    ),
    mutant(
        "a revoked key opens",
        "app/access/keys.py",
        "tables.Key.digest == digest, *_valid()",
        "tables.Key.digest == digest",
        f"{KEYS}::test_a_revoked_or_unknown_secret_opens_nothing",
    ),
    mutant(
        "the last administrator goes",
        "app/access/keys.py",
        "if last and not session",
        "if False and not session",
        f"{KEYS}::test_the_last_administrators_key_stays",
    ),
    mutant(
        "secrets are kept",
        "app/access/keys.py",
        "hashlib.sha256(secret.encode()).hexdigest()",
        "secret",
        f"{KEYS}::test_the_secret_is_not_kept",
    ),
    mutant(
        "the answer to any attempt signs in",
        "app/access/openid.py",
        "if not hmac.compare_digest(",
        "if False and not hmac.compare_digest(",
        f"{OPENID}::test_an_answer_to_another_attempt_is_refused",
    ),
    mutant(
        "a token of another attempt signs in",
        "app/access/openid.py",
        '"nonce": nonce,',
        '"nonce": None,',
        f"{OPENID}::test_a_token_with_a_wrong_claim_signs_nobody_in",
    ),
    mutant(
        "a token for another client signs in",
        "app/access/openid.py",
        '"aud": {"essential": True, "value": self._config.openid_client_id},',
        "",
        f"{OPENID}::test_a_token_with_a_wrong_claim_signs_nobody_in",
    ),
    mutant(
        "a declined sign-in of a program goes on",
        "app/access/openid.py",
        'if error == "access_denied":',
        "if False:",
        f"{DEVICE}::test_a_person_may_decline",
    ),
    mutant(
        "a token outlives the access of its person",
        "app/access/sign_ins.py",
        "return None if key_id is None else principal_of(session, key_id)",
        'return None if key_id is None else Principal(key_id, "ann", "clerk")',
        f"{DEVICE}::test_a_token_ends_with_the_access_of_its_person",
    ),
    mutant(
        "a token never expires",
        "app/access/sign_ins.py",
        "_S.kind == kind, _S.expires_at > db_now())",
        "_S.kind == kind)",
        f"{DEVICE}::test_a_token_ends_by_itself",
    ),
    mutant(
        "a program that signs in sends a key of this machine",
        "app/remote/transport.py",
        'f"Bearer {credential}" if credential else ""',
        'f"Bearer {credential}" if credential else self._headers.get("Authorization", "")',
        f"{DEVICE}::test_no_key_is_sent_while_nobody_is_signed_in",
    ),
    mutant(
        "new keys of the provider are not fetched",
        "app/access/openid.py",
        "self._keys(fresh=True)",
        "self._keys()",
        f"{OPENID}::test_new_keys_of_the_provider_are_fetched_once_they_sign",
    ),
    mutant(
        "a cookie leads to another site",
        "app/access/pages.py",
        "return _own(urlsafe_b64decode(place.encode()).decode())",
        "return urlsafe_b64decode(place.encode()).decode()",
        f"{OPENID}::test_a_next_that_the_browser_has_made_up_is_refused_too",
    ),
    mutant(
        "a subject is one person at all issuers",
        "app/access/people.py",
        "known = (tables.Key.issuer == visitor.issuer, tables",
        "known = (tables.Key.issuer.is_not(None), tables",
        f"{OPENID}::test_a_person_is_one_of_its_issuer",
    ),
    mutant(
        "a revoked person comes back",
        "app/access/people.py",
        "(known is not None and known.revoked_at is not None)",
        "False",
        f"{OPENID}::test_a_revoked_person_is_signed_out_and_stays_out",
    ),
    mutant(
        "a person is the last administrator",
        "app/access/keys.py",
        "tables.Key.issuer.is_(None), *_valid()",
        "*_valid()",
        f"{OPENID}::test_a_person_is_not_the_last_administrator",
    ),
    mutant(
        "any address may name people in headers",
        "app/access/proxies.py",
        "return any(address in network for network in self._networks)",
        "return True",
        f"{PROXIES}::test_headers_count_from_the_addresses_of_proxies_alone",
    ),
    mutant(
        "a header names the address of a proxy",
        "app/access/proxies.py",
        'scope.get("state", {}).get(_PEER, scope.get("client"))',
        'scope.get("client")',
        f"{PROXIES}::test_an_address_that_a_header_names_is_not_the_proxys",
    ),
    mutant(
        "a session outlives what the proxy says",
        "app/access/authentication.py",
        "if proxies is None or proxies.user(scope) != principal.proxy_user:",
        "if False:",
        f"{PROXIES}::test_a_session_counts_only_while_the_proxy_names_its_user",
    ),
    mutant(
        "any host is served",
        "app/http/hosts.py",
        "if host is not None and not self._hosts.serves(host):",
        "if False:",
        "app/http/test_browsers.py::test_only_names_of_the_service_are_served",
    ),
    mutant(
        "pages of any origin change things",
        "app/http/hosts.py",
        'if origin is not None and scope["method"] not in _SAFE and not self._may_change(origin, host):',
        "if False:",
        "app/http/test_browsers.py::test_only_pages_of_known_origins_change_anything",
    ),
    mutant(
        "the connections of an address are not counted",
        "app/http/connections.py",
        "self.numbers[address] += 1",
        "self.numbers[address] += 0",
        "app/http/test_connections.py::test_an_address_has_so_many_connections_and_gets_them_back",
    ),
    mutant(
        "a line of the log that finds no room ends the work",
        "app/logs.py",
        "with contextlib.suppress(OSError, ValueError, AttributeError):",
        "with contextlib.suppress(ValueError):",
        "faults/test_full_disk.py::test_a_line_that_cannot_be_written_is_lost_and_nothing_else",
    ),
    mutant(
        "a dataset that could not be registered leaves its folder",
        "app/datasets/service.py",
        "        upload.abort()\n        store.delete(_folder(id))",
        "        upload.abort()",
        "faults/test_full_disk.py::test_a_dataset_that_the_database_has_no_room_for_leaves_no_folder",
    ),
    # what requests mean
    mutant(
        "If-Match is ignored",
        "app/models/aliases.py",
        "if if_match is not None and if_match != (current or 0):",
        "if False:",
        "app/models/test_models_service.py::test_an_alias_moves_and_its_revision_grows",
    ),
    mutant(
        "an alias of another model is found",
        "app/models/aliases.py",
        "    at = (tables.Alias.model_id == model.id, tables.Alias.name == alias)\n    current",
        "    at = (tables.Alias.name == alias,)\n    current",
        "app/models/test_models_service.py::test_aliases_of_two_models_do_not_mix",
    ),
    mutant(
        "versions skip a number",
        "app/models/versions.py",
        "owner.last_number = owner.last_number + 1",
        "owner.last_number = owner.last_number + 2",
        "app/models/test_models_service.py::test_versions_are_numbered_from_one_and_the_latest_is_the_default",
    ),
    mutant(
        "a page token is ignored",
        "app/store/lookup.py",
        "if page_token:",
        "if False:",
        f"{KEYS}::test_pages_follow_one_another",
    ),
    mutant(
        "the last of a page is on the next one too",
        "app/store/lookup.py",
        "by < _id_of(page_token)",
        "by <= _id_of(page_token)",
        f"{KEYS}::test_pages_follow_one_another",
    ),
    mutant(
        "a name is preferred to an id",
        "app/store/lookup.py",
        "key=lambda row: row.id != ref)",
        "key=lambda row: row.id == ref)",
        "app/store/test_lookup.py",
    ),
    mutant(
        "an Idempotency-Key goes for any request",
        "app/store/idempotency.py",
        "if found[0] != fingerprint:",
        "if False:",
        "app/http/test_replays.py::test_the_same_key_with_another_submission_is_refused",
    ),
    mutant(
        "an Idempotency-Key does nothing",
        "app/store/idempotency.py",
        "if token is None:",
        "if True:",
        "app/http/test_replays.py::test_the_same_submission_again_gets_the_same_job",
    ),
    mutant(
        "bodies may be nested as deep as they like",
        "app/http/bodies.py",
        "if _deeper_than(document, MAX_DEPTH):",
        "if False:",
        "app/http/test_errors.py::test_a_body_that_is_no_json_object_says_so",
    ),
    mutant(
        "a body may be longer than it claims",
        "app/http/body_limits.py",
        "if self._n_bytes > self.limit:",
        "if False:",
        "app/datasets/test_uploads.py::test_a_body_that_grows_beyond_the_bound_is_refused_and_leaves_nothing",
    ),
    # what is on the disk
    mutant(
        "a folder has its name before it is on the disk",
        "app/store/files.py",
        "                sync_folder(temporary)\n                os.rename(temporary, target)\n",
        "                os.rename(temporary, target)\n                sync_folder(target)\n",
        "app/store/test_files.py::test_a_folder_gets_its_name_when_all_in_it_is_on_the_disk",
    ),
    mutant(
        "arrays are not forced to the disk",
        "app/store/files.py",
        "allow_pickle=False)\n        _sync(file)\n",
        "allow_pickle=False)\n",
        "app/store/test_files.py::test_a_folder_gets_its_name_when_all_in_it_is_on_the_disk",
    ),
    mutant(
        "changed bytes are read",
        "app/store/files.py",
        "if file_digest(path) != digest:",
        "if False:",
        "app/store/test_files.py::test_a_changed_byte_is_noticed",
    ),
    mutant(
        "an upload is not hashed",
        "app/store/files.py",
        "self._hash.update(chunk)",
        "pass",
        "app/store/test_files.py::test_an_upload_is_hashed_while_it_comes",
    ),
    # what files say
    mutant(
        "svmlight indices are counted from one",
        "app/formats/svmlight_lines.py",
        "indices[nnz] = index - first_index",
        "indices[nnz] = index",
        "app/formats/test_svmlight_blocks.py::test_what_is_plain_is_read_as_the_compiled_loops_read_it",
    ),
    mutant(
        "svmlight indices may repeat",
        "app/formats/svmlight_lines.py",
        "if index <= before:",
        "if index < before:",
        "app/formats/test_svmlight.py::test_an_error_names_its_line",
    ),
    mutant(
        "an svmlight cost loses its first digit",
        "app/formats/svmlight_lines.py",
        "costs[row, 0] = start + 5",
        "costs[row, 0] = start + 6",
        "app/formats/test_svmlight_blocks.py::test_what_is_plain_is_read_as_the_compiled_loops_read_it",
    ),
    mutant(
        "indices of plain svmlight blocks are counted from one",
        "app/formats/svmlight_blocks.py",
        "return indices - np.int32(1), values",
        "return indices, values",
        "app/formats/test_svmlight.py::test_zeros_are_not_stored_but_count_as_columns",
    ),
    mutant(
        "indices of plain svmlight blocks may repeat",
        "app/formats/svmlight_blocks.py",
        "np.greater(indices[1:]",
        "np.greater_equal(indices[1:]",
        "app/formats/test_svmlight_blocks.py::test_all_else_is_left_to_the_compiled_loops",
    ),
    mutant(
        "an index of another base is plain",
        "app/formats/svmlight_blocks.py",
        'if as_array(tokens.text).take(tokens.offsets.take(at)).min() < ord("1"):',
        "if False:",
        "app/formats/test_svmlight_blocks.py",
    ),
    mutant(
        "a blank after a colon is plain",
        "app/formats/svmlight_blocks.py",
        "if (is_empty[1:] & (marks[:-1] == _COLON)).any():",
        "if False:",
        "app/formats/test_svmlight_blocks.py",
    ),
    mutant(
        "decimals lose their sign",
        "app/formats/decimals.py",
        "(-value if negative else value)",
        "value",
        "app/formats/test_decimals.py",
    ),
    mutant(
        "long decimals are rounded twice",
        "app/formats/decimals.py",
        "mantissa > 9007199254740992",
        "mantissa > 900719925474099200",
        "app/formats/test_decimals.py",
    ),
    mutant(
        "CSV records may be ragged",
        "app/formats/csv_cells.py",
        "if code == EXACT and n_cells != n_columns:",
        "if code == EXACT and n_cells < n_columns:",
        "app/formats/test_csv_table.py::test_an_error_names_its_line_and_column",
    ),
    mutant(
        "JSON lines take an index twice",
        "app/formats/json_lines.py",
        "if len(set(indices)) != len(indices):",
        "if False:",
        "app/formats/test_json_lines.py::test_an_error_in_features_names_its_line",
    ),
    mutant(
        "a label of -0 is another than 0",
        "app/formats/labels.py",
        'if sign == "-" and digits != "0" else digits',
        'if sign == "-" else digits',
        "app/formats/test_labels.py::test_labels_that_are_the_same_number_are_the_same_label",
    ),
    mutant(
        "a long record is read past the bound",
        "app/formats/window.py",
        "min(max(wanted, len(self._unread)), left)",
        "max(wanted, len(self._unread))",
        "app/formats/test_window.py",
    ),
    # features
    mutant(
        "an index as large as the number of features is taken",
        "app/features/row_loops.py",
        "index >= n_features",
        "index > n_features",
        "app/features/test_columns.py::test_an_instance_that_does_not_fit_says_why",
    ),
    mutant(
        "terms are weighed by another idf",
        "app/features/term_weights.py",
        "np.log((1 + n_texts) / (1 + in_texts)) + 1.0",
        "np.log((1 + n_texts) / (1 + in_texts))",
        "app/features/test_text.py::test_features_are_those_of_scikit_learn",
    ),
    mutant(
        "combining marks end words",
        "app/features/reading.py",
        '_LETTER = rf"\\w{_MARKS}{_ZWNJ}{_ZWJ}"',
        '_LETTER = rf"\\w{_ZWNJ}{_ZWJ}"',
        "app/features/test_reading.py",
    ),
    mutant(
        "a class may lose all its rows to the test part",
        "solvers/selection/splits.py",
        "np.maximum(counts - spared, 0)",
        "counts",
        "solvers/selection/test_splits.py",
    ),
    # workers
    mutant(
        "a worker ignores a cancellation",
        "workers/running/job_context.py",
        "if self._cancel.is_set():\n            raise Cancelled",
        "if False:\n            raise Cancelled",
        "workers/test_job_context.py::test_a_wish_to_cancel_is_heard",
    ),
    mutant(
        "a heartbeat never cancels",
        "workers/running/job_context.py",
        "if self._cancel.is_set() and (at_once or waited >= _CANCEL_SECONDS):",
        "if False:",
        "workers/test_job_context.py::test_work_that_cannot_be_interrupted_is_cancelled_in_its_stead",
    ),
    mutant(
        "steps that come fast are lost",
        "workers/running/job_context.py",
        "self._steps.append(dict(step))",
        "self._steps = [dict(step)]",
        "workers/test_job_context.py::test_steps_that_come_fast_are_written_together_and_none_is_lost",
    ),
    mutant(
        "a worker never gives up its lease",
        "workers/running/job_context.py",
        "if time.monotonic() >= self._deadline:\n                    raise self._fence() from error",
        "if False:\n                    raise self._fence() from error",
        "workers/test_job_context.py::test_a_worker_that_cannot_write_for_its_lease_gives_the_job_up",
    ),
    mutant(
        "bytes that are no frame are read",
        "workers/sharding/frames.py",
        "if magic != _MAGIC:",
        "if False:",
        "workers/test_frames.py::test_a_frame_of_another_form_or_with_more_behind_it_is_refused",
    ),
    mutant(
        "a frame may have trailing bytes",
        "workers/sharding/frames.py",
        "if at != len(frame):",
        "if at > len(frame):",
        "workers/test_frames.py::test_a_frame_of_another_form_or_with_more_behind_it_is_refused",
    ),
    mutant(
        "objects are sent",
        "workers/sharding/frames.py",
        "if dtype.str.encode() not in _DTYPES:",
        "if False:",
        "workers/test_frames.py::test_objects_are_never_sent",
    ),
    mutant(
        "the fraction done falls",
        "workers/running/eta.py",
        "self._fraction = max(self._fraction, min(_MOST, done))",
        "self._fraction = min(_MOST, done)",
        "workers/test_eta.py",
    ),
    # solvers
    mutant(
        "a bound of biases that the dual variables do not make",
        "solvers/linear/driver/ascent.py",
        "return 0.5 * float(made @ made - biases @ biases)",
        "return 0.0",
        "solvers/linear/test_constant.py::test_every_certificate_is_true_and_of_the_model",
    ),
    mutant(
        "a model whose biases are still divided by the root of their share",
        "solvers/linear/driver/ascent.py",
        "W[ascending == layout.constant.place] *= W.dtype.type(layout.constant.root)",
        "pass",
        "solvers/linear/test_constant.py::test_every_certificate_is_true_and_of_the_model",
    ),
    mutant(
        "a linear machine stops at a gap a hundred times as large",
        "solvers/core/certified_ascent.py",
        "        if gap <= tol:\n            return",
        "        if gap <= 100.0 * tol:\n            return",
        f"{CONTRACT}::test_a_tighter_tolerance_gives_a_smaller_gap",
    ),
    mutant(
        "a kernel machine stops whenever it has measured",
        "solvers/kernel_svm/kernel_machine.py",
        "converged = measured and relative_gap(primal, dual) <= params.tol",
        "converged = measured",
        f"{CONTRACT}::test_a_tighter_tolerance_gives_a_smaller_gap",
    ),
    mutant(
        "a block step with a wrong sign",
        "solvers/linear/steps/block_step.py",
        "b[t] = g / K + old[t] + S0",
        "b[t] = g / K - old[t] + S0",
        f"{CONTRACT}::test_a_tighter_tolerance_gives_a_smaller_gap",
    ),
    mutant(
        "weights of classes are ignored",
        "solvers/core/machine.py",
        "np.asarray(problem.weights * class_weights(problem, given)[problem.y])",
        "problem.weights",
        f"{ORACLES}::test_a_constant_feature_and_weights_of_classes_are_part_of_the_objective",
    ),
    mutant(
        "the intercept is not that of the constant feature",
        "solvers/core/machine.py",
        "fitted.with_last_as_intercept(self.params.bias)",
        "fitted.with_last_as_intercept(1.0)",
        f"{ORACLES}::test_a_constant_feature_and_weights_of_classes_are_part_of_the_objective",
    ),
    mutant(
        "weights by label go to the classes in another order",
        "solvers/core/machine.py",
        "for label in problem.classes])",
        "for label in problem.classes[::-1]])",
        f"{ORACLES}::test_a_constant_feature_and_weights_of_classes_are_part_of_the_objective",
    ),
    mutant(
        "a path in C goes too far",
        "solvers/core/dual_variables.py",
        "min(linear / square, most)",
        "max(linear / square, most)",
        "solvers/core/test_path.py",
    ),
    mutant(
        "weights that are damaged in object storage answer",
        "app/store/ranges.py",
        "if hashlib.sha256(part).hexdigest() != self._digests[block]:",
        "if False:",
        "app/store/test_ranges.py::test_a_damaged_block_is_refused",
    ),
    mutant(
        "rows of weights are read one place further",
        "app/store/ranges.py",
        "begin - a * self._block_bytes)",
        "begin - a * self._block_bytes + 1)",
        "app/store/test_ranges.py::test_rows_are_those_of_the_array",
    ),
    mutant(
        "a damaged model is loaded",
        "solvers/core/stored_models.py",
        "if verify and file_digest(path) != digest:",
        "if False:",
        "solvers/core/test_model.py::test_changed_bytes_and_strange_folders_are_refused",
    ),
    mutant(
        "the best classes are returned in rising order",
        "solvers/numerics/best.py",
        "while place > 0 and score > worth[place - 1]:",
        "while place > 0 and score < worth[place - 1]:",
        "solvers/core/test_model.py",
    ),
    mutant(
        "examples that are left out return all at once",
        "solvers/numerics/orders.py",
        "(i + epoch) & (every - 1) == 0",
        "epoch & (every - 1) == 0",
        "solvers/numerics/test_orders.py",
    ),
    mutant(
        "F1 is half of what it is",
        "solvers/metrics/label_table.py",
        "return ratios(2 * self.common, self.true + self.named)",
        "return ratios(self.common, self.true + self.named)",
        "solvers/metrics/test_flat_measures.py",
    ),
    mutant(
        "classes of the same score come before the true one",
        "solvers/metrics/ranking.py",
        "before += values[i, c] > score",
        "before += values[i, c] >= score",
        "solvers/metrics/test_ranking.py::test_places_are_those_in_the_sorted_list",
    ),
    mutant(
        "the mid-p value leaves out all that was seen",
        "solvers/metrics/comparison.py",
        "2 * (tail - at / 2)",
        "2 * (tail - at)",
        "solvers/metrics/test_comparison.py::test_the_mid_p_value_counts_half_of_what_was_seen",
    ),
    mutant(
        "labels that a model does not have are taken for its first",
        "workers/phases/evaluated_rows.py",
        "known[strange] = labels.n_known + np.arange(len(strange))",
        "known[strange] = 0",
        "workers/test_evaluating.py::test_labels_that_the_model_does_not_have_are_counted_told_and_wrong",
    ),
    mutant(
        "an evaluation that is given back forgets its rows",
        "workers/job_kinds/evaluating.py",
        "except Drained:\n            self._save(evaluation)\n",
        "except Drained:\n",
        "workers/test_evaluating.py::test_an_evaluation_that_was_interrupted_goes_on_and_finds_the_same",
    ),
    mutant(
        "a bound counts a class with itself",
        "solvers/metrics/bounds.py",
        "pairs = n_classes * (n_classes - 1) // 2",
        "pairs = n_classes * (n_classes + 1) // 2",
        "solvers/metrics/test_bounds.py",
    ),
    mutant(
        "nodes in a cycle are passed over",
        "solvers/labels/taxonomy.py",
        "if len(names) < len(above) or not names:",
        "if not names:",
        "solvers/labels/test_taxonomy.py::test_what_is_no_tree_is_refused_by_name",
    ),
    mutant(
        "labels with their parents are called orphans",
        "solvers/labels/label_sets.py",
        "lonely = ~np.isin(",
        "lonely = np.isin(",
        "solvers/labels/test_label_sets.py",
    ),
    mutant(
        "a node out of the best set forgets its parent",
        "solvers/hierarchical/subtrees.py",
        "else f[j] + min(0.0, margin)",
        "else f[j]",
        "solvers/hierarchical/test_subtree_model.py",
    ),
    mutant(
        "both classes of a pair are on one side",
        "solvers/output_codes/code_families.py",
        "code[first, columns], code[second, columns] = 1, -1",
        "code[first, columns], code[second, columns] = 1, 1",
        "solvers/output_codes/test_code_families.py",
    ),
)


def faults(mutants: Sequence[Mutant]) -> list[str]:
    """What is wrong with the list itself: a name twice, or an old text that is not once in its file."""
    found = [
        f"{each.name}: the name is there twice" for each in mutants if sum(each.name == m.name for m in mutants) > 1
    ]
    for each in mutants:
        path = ROOT / each.file
        count = path.read_text().count(each.old) if path.is_file() else 0
        if count != 1:
            found.append(f"{each.name}: its old text is {count} times in {each.file}, not once")
        missing = [test for test in each.tests if not (ROOT / test.split("::")[0]).is_file()]
        found += [f"{each.name}: there is no {test}" for test in missing]
    return found


def run(each: Mutant) -> tuple[str, float, str]:
    """What became of a mutant, the seconds that took, and the end of what its tests said."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                # with the compiled code, most of which the fault does not change
                shutil.copytree(source, copy / part)
            else:
                shutil.copy(source, copy / part)
        target = copy / each.file
        target.write_text(target.read_text().replace(each.old, each.new))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-x", "-m", "not slow", "-p", "no:cacheprovider", *each.tests],
                cwd=copy,
                env={**os.environ, "PYTHONPATH": str(copy)},
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return BROKEN, time.monotonic() - started, f"its tests have not ended after {MOST_SECONDS} s"
    outcome = {0: SURVIVED, 1: CAUGHT}.get(done.returncode, BROKEN)
    return outcome, time.monotonic() - started, done.stdout[-2000:]


def main(names: Sequence[str]) -> int:
    """Run the mutants of these names, or all; 0 if every one of them is caught."""
    wrong = faults(MUTANTS) + [
        f"no mutant is called {name!r}" for name in names if name not in {m.name for m in MUTANTS}
    ]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    chosen = [each for each in MUTANTS if not names or each.name in names]
    left = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for each, (outcome, seconds, said) in zip(chosen, pool.map(run, chosen), strict=True):
            print(f"{outcome:8}  {seconds:6.1f} s  {each.file:28}  {each.name}", flush=True)
            if outcome != CAUGHT:
                left.append(each.name)
                print(said)
    print(f"{len(chosen) - len(left)} of {len(chosen)} caught" + (f"; left are {', '.join(left)}" if left else ""))
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
