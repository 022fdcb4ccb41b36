import { expect } from 'chai';
import { PROBLEMS, type ProblemCode } from '../../../src/contract/problem.js';
import { problemHeaders, problemOf } from '../../../src/http/problem.js';

/** Written by hand from the table of endpoints, so that a mistake in the table is noticed. */
const EXPECTED: Record<ProblemCode, [status: number, retryable: boolean]> = {
  request_conflict: [422, false],
  not_found: [404, false],
  closed: [409, false],
  sold_out: [409, false],
  not_enough_left: [409, false],
  limit_reached: [409, false],
  refused_by_store: [422, false],
  not_open: [409, true],
  paused: [503, true],
  loading: [503, true],
  rate_limited: [429, true],
  overloaded: [503, true],
  unavailable: [503, true],
  outcome_unknown: [503, true],
  bad_request: [400, false],
  unauthorized: [401, false],
  role_needed: [403, false],
  denied: [403, false],
  queue_pass_needed: [403, false],
  purchase_token_needed: [403, false],
  route_not_found: [404, false],
  order_not_found: [404, false],
  purchase_not_found: [404, false],
  dead_letter_not_found: [404, false],
  webhook_not_found: [404, false],
  job_not_found: [404, false],
  refund_not_found: [404, false],
  method_not_allowed: [405, false],
  misdirected: [421, false],
  request_timeout: [408, false],
  wrong_state: [409, false],
  sale_overlaps: [409, false],
  units_not_free: [409, false],
  not_replayable: [409, false],
  reconcile_running: [409, true],
  profile_running: [409, true],
  version_conflict: [409, false],
  rules_not_found: [404, false],
  payload_too_large: [413, false],
  unsupported_media_type: [415, false],
  headers_too_large: [431, false],
  internal: [500, false],
  repairing: [503, true],
  payment_declined: [402, false],
  decline_limit_reached: [409, false],
  finding_not_found: [404, false],
  case_not_found: [404, false],
  coupon_not_found: [404, false],
  coupon_refused: [409, false],
  refund_due: [409, false],
  payment_conflict: [409, false],
  payment_in_progress: [409, true],
  payment_method_needed: [422, false],
  payment_not_configured: [501, false],
  broker_not_configured: [501, false],
  wrong_payment_mode: [422, false],
  bad_signature: [401, false],
  ticket_not_found: [404, false],
  tokens_gone: [409, true],
  cancel_limit_reached: [409, false],
  unpaid_pause: [429, true],
  token_limit_reached: [409, false],
  degraded: [503, true],
  rules_unfit: [409, false],
};

describe('problem', () => {
  for (const [code, [status, retryable]] of Object.entries(EXPECTED) as [ProblemCode, [number, boolean]][]) {
    it(`maps ${code} to ${status}${retryable ? ' and may be tried again' : ''}`, () => {
      const problem = problemOf(code, { requestId: 'k1' });
      expect(problem).to.include({ status, retryable, code, requestId: 'k1', type: `urn:seckill:problem:${code}` });
      expect(problem.title).to.have.length.above(3);
      expect(problem.detail).to.match(/\.$/);
      expect(problem.retryAfterMs !== undefined, 'retryAfterMs').to.equal(retryable);
      const headers = problemHeaders(code);
      expect(headers.includes('Retry-After'), 'Retry-After').to.equal(retryable);
      expect(headers.join(' ')).to.include('Cache-Control no-store');
      if (retryable) expect(Number(headers.at(-1)) * 1000).to.be.at.least(problem.retryAfterMs as number);
    });
  }

  it('is retryable if the status is 503 or 429', () => {
    const temporary = Object.values(PROBLEMS).filter((row) => row.status === 503 || row.status === 429);
    expect(temporary).to.have.length.above(5);
    for (const row of temporary) expect(row.retryAfterMs).to.be.a('number');
  });

  it('has a null requestId without a request, and prefers given fields to its row', () => {
    const errors = [{ field: 'stock', message: 'must be a whole number' }];
    expect(problemOf('bad_request', { detail: 'So.', errors })).to.deep.include({
      requestId: null,
      detail: 'So.',
      errors,
    });
  });
});
