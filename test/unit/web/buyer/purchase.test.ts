import { expect } from 'chai';
import { MEANINGS, type ProblemCode } from '../../../../web/buyer/problem-codes.js';
import {
  answered,
  checked,
  clicked,
  found,
  gaveUp,
  keptOf,
  newPurchase,
  restored,
  signedInAgain,
  type Purchase,
} from '../../../../web/buyer/purchase.js';
import { failure, success } from './fake-shop.js';

const PROBLEM_CODES = Object.keys(MEANINGS) as ProblemCode[];
const CLICKED_MS = 1_000_000;
const asking = (): Purchase => clicked(newPurchase('k1', 2), CLICKED_MS);

describe('state of a purchase', () => {
  it('keeps its key through every answer that is not final', () => {
    for (const code of PROBLEM_CODES) expect(answered(asking(), failure(code, 1000)).key, code).to.equal('k1');
  });

  it('is sent again by itself only after a lost or retryable answer', () => {
    const again = PROBLEM_CODES.filter((code) => answered(asking(), failure(code)).step === 'asking');
    expect(again).to.have.members([
      'degraded',
      'internal',
      'loading',
      'no_answer',
      'outcome_unknown',
      'overloaded',
      'rate_limited',
      'request_timeout',
      'unavailable',
    ]);
    const checking = PROBLEM_CODES.filter((code) => answered(asking(), failure(code)).step === 'checking');
    expect(checking).to.have.members(['request_conflict', 'unauthorized']);
  });

  it('repeats an early click if the server says that the sale opens soon', () => {
    expect(answered(asking(), failure('not_open', 3000))).to.include({ step: 'asking', tries: 1 });
    expect(answered(asking(), failure('not_open', 60_000))).to.include({ step: 'ready' });
    expect(answered(asking(), failure('not_open'))).to.include({ step: 'ready' });
  });

  it('does not trust a refusal after a lost answer until it has read the status', () => {
    const lost = answered(asking(), failure('no_answer'));
    expect(lost).to.include({ step: 'asking', isUnsure: true, tries: 1 });
    const refused = answered(lost, failure('sold_out'));
    expect(refused.step).to.equal('checking');
    expect(
      checked(refused, success({ status: 'ordered', orderId: '9' }), CLICKED_MS).step,
      'the lost try won',
    ).to.equal('ordered');
    const none = checked(refused, failure('purchase_not_found'), CLICKED_MS);
    expect(none).to.include({ step: 'ready', isUnsure: false, clickedAtMs: null });
    expect(none.problem?.code).to.equal('sold_out');
    expect(checked(refused, failure('unavailable'), CLICKED_MS), 'asked again').to.equal(refused);
  });

  it('ignores a success without a status, which did not come from our server', () => {
    for (const body of [null, {}, { status: 'welcome to this network' }]) {
      const said = answered(asking(), success(body));
      expect(said).to.include({ step: 'asking', tries: 1, isUnsure: true });
      expect(said.problem?.code).to.equal('no_answer');
    }
  });

  it('continues a recent click after a new sign-in', () => {
    const lost = answered(asking(), failure('no_answer'));
    const ended = answered(lost, failure('unauthorized'));
    expect(ended.step).to.equal('checking');
    const again = signedInAgain(ended);
    expect(checked(again, failure('purchase_not_found'), CLICKED_MS + 5000).step).to.equal('asking');
    expect(checked(again, failure('purchase_not_found'), CLICKED_MS + 600_000)).to.include({
      step: 'ready',
      problem: null,
    });
    const atOnce = signedInAgain(answered(asking(), failure('unauthorized')));
    expect(atOnce, 'of the first try, too').to.include({ step: 'checking', problem: null });
    expect(checked(atOnce, failure('purchase_not_found'), CLICKED_MS + 5000).step).to.equal('asking');
    expect(signedInAgain(answered(asking(), failure('sold_out'))).problem?.code).to.equal('sold_out');
  });

  it('trusts the refusal of a busy server, which has taken nothing', () => {
    const busy = answered(asking(), failure('overloaded', 1000));
    expect(busy.isUnsure).to.equal(false);
    expect(answered(busy, failure('sold_out')).step).to.equal('ready');
  });

  it('is held, then ordered or failed, and never steps back', () => {
    const held = answered(asking(), success({ requestId: 'k1', status: 'pending' }, 202));
    expect(held.step).to.equal('held');
    const ordered = found(held, { status: 'ordered', orderId: '9' });
    expect(ordered).to.include({ step: 'ordered', orderId: '9' });
    expect(found(ordered, { status: 'pending' }), 'an old answer').to.equal(ordered);
    expect(found(held, { status: 'failed', orderId: '9', reason: 'units_lost' })).to.include({
      step: 'failed',
      reason: 'units_lost',
    });
    expect(found(held, { status: 'unknown', degraded: 'L3' })).to.equal(held);
    expect(answered(ordered, failure('sold_out')), 'of a try that was under way').to.equal(ordered);
  });

  it('asks after a reload what became of the click, and continues only a recent click', () => {
    expect(restored(keptOf(newPurchase('k1', 2)))).to.deep.equal(newPurchase('k1', 2));
    const again = restored(keptOf(asking()));
    expect(again).to.include({ step: 'checking', key: 'k1', quantity: 2 });
    expect(checked(again, success({ status: 'pending' }), CLICKED_MS).step).to.equal('held');
    expect(checked(again, failure('purchase_not_found'), CLICKED_MS + 10_000).step).to.equal('asking');
    expect(checked(again, failure('purchase_not_found'), CLICKED_MS + 600_000).step).to.equal('ready');
  });

  it('keeps its click and stops asking if the server refuses to tell its status', () => {
    const held = answered(asking(), success({ status: 'pending' }, 202));
    const checking = restored(keptOf(asking()));
    for (const purchase of [held, checking]) {
      for (const code of ['denied', 'bad_signature', 'not_found'])
        expect(checked(purchase, failure(code), CLICKED_MS), code).to.deep.include({
          step: 'ready',
          clickedAtMs: CLICKED_MS,
          problem: { code, retryAfterMs: null },
        });
      for (const code of ['unavailable', 'rate_limited', 'no_answer', 'unauthorized'])
        expect(checked(purchase, failure(code), CLICKED_MS), code).to.equal(purchase);
    }
    expect(checked(held, failure('purchase_not_found'), CLICKED_MS), 'of an api that is behind').to.equal(held);
  });

  it('forgets a refused click on a reload', () => {
    expect(restored(keptOf(answered(asking(), failure('sold_out'))))).to.include({ step: 'ready', key: 'k1' });
  });

  it('is looked up, and never sent again by itself, once given up', () => {
    const given = gaveUp(answered(asking(), failure('overloaded'))); // an attempt may be under way
    expect(given).to.include({ step: 'checking', key: 'k1', isUnsure: true });
    expect(checked(given, success({ status: 'pending' }), CLICKED_MS).step, 'a try has arrived').to.equal('held');
    for (const page of [given, restored(keptOf(given))]) {
      const none = checked(page, failure('purchase_not_found'), CLICKED_MS + 1);
      expect(none).to.include({ step: 'ready', key: 'k1' });
    }
    const none = checked(given, failure('purchase_not_found'), CLICKED_MS + 1);
    expect(none.problem?.code, 'why it was given up').to.equal('overloaded');
    const held = found(asking(), { status: 'pending' });
    expect(gaveUp(held)).to.equal(held);
  });
});
