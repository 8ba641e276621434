"""What responses amount to. Spec: 07 §14.6."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harnpy.agent.people import (
    APPROVAL,
    CANCELLED,
    DUAL_CONTROL,
    KINDS,
    QUESTION,
    TIMED_OUT,
    ApprovalDenied,
    Request,
    approvals,
    outcome,
    request_from,
    response_from,
    signature,
    unanswered,
)

NOW = "2026-01-01T00:00:00.000Z"
NAMES = st.sampled_from(["ann", "bob", "eve", None])
RESPONSES = st.lists(
    st.fixed_dictionaries({"approved": st.sampled_from([True, True, False]), "reviewer": NAMES})
)


def request(kind: str = APPROVAL, **payload: Any) -> Request:
    return Request("id", kind, "trace", NOW, payload)


def test_a_signature_is_the_hash_of_these_lines() -> None:
    vote = {"reviewer": "ann", "responded_at": NOW, "reason": None}
    text = f"harn-hitl-approval-v1\nrequest_id:r1\nreviewer:ann\nsigned_at:{NOW}\napproved:true\nreason:\n"
    assert signature("r1", vote) == "sha256:" + sha256(text.encode()).hexdigest()
    assert signature("r1", {**vote, "reason": "ok"}) != signature("r1", vote)


def test_a_response_keeps_what_it_says_and_gets_a_time() -> None:
    assert response_from({"answer": False, "other": 1, "reason": None}, NOW) == {
        "answer": False,
        "responded_at": NOW,
    }
    assert response_from({"responded_at": "then"}, NOW)["responded_at"] == "then"


def test_a_record_gives_the_request_back() -> None:
    asked = request(quorum=2, reviewers=["ann"])
    assert request_from(asked.record()) == asked


@given(RESPONSES, st.integers(1, 3), st.sampled_from([[], ["ann", "bob"]]))
def test_an_outcome_never_changes_by_later_responses(
    responses: list[dict[str, Any]], quorum: int, reviewers: list[str]
) -> None:
    asked = request(quorum=quorum, reviewers=reviewers)
    heard = [{**response, "responded_at": NOW} for response in responses]
    ended = None
    for count in range(len(heard) + 1):
        now = outcome(asked, heard[:count])
        if ended is not None:
            assert now is not None
            assert (now.value, str(now.error)) == (ended.value, str(ended.error))
        ended = now
    if ended is not None and ended.value:
        signers = [each["reviewer"] for each in ended.value["signatures"]]
        assert len(set(signers)) == len(signers) == quorum
        assert ended.value["reviewers"] == sorted(signers)
        assert not reviewers or set(signers) <= set(reviewers)
    elif ended is None:
        assert len(approvals(asked, heard)) < quorum
    else:
        assert isinstance(ended.error, ApprovalDenied)


@given(RESPONSES, st.integers(1, 3))
def test_what_is_listed_is_what_has_no_outcome(responses: list[dict[str, Any]], needed: int) -> None:
    asked = request(DUAL_CONTROL, n=needed, m=3, approvers=[])
    heard = [{**response, "responded_at": NOW} for response in responses]
    records = [(KINDS[DUAL_CONTROL].asked, asked.record())]
    records += [(KINDS[DUAL_CONTROL].answered, {"request_id": "id", **response}) for response in heard]
    assert unanswered(records) == ([asked] if outcome(asked, heard) is None else [])


def test_timeouts_and_cancellations_close_a_request() -> None:
    asked = (KINDS[QUESTION].asked, request(QUESTION, prompt="?").record())
    assert len(unanswered([asked])) == 1
    for end in (TIMED_OUT, CANCELLED):
        assert unanswered([asked, (end, {"request_id": "id"})]) == []
    assert len(unanswered([asked, (TIMED_OUT, {"request_id": "another"})])) == 1
