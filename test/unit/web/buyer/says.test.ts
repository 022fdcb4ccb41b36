import { expect } from 'chai';
import { formatOf } from '../../../../web/buyer/format.js';
import type { OrderView } from '../../../../web/buyer/order.js';
import { sentenceFor, shownOf, type Shown } from '../../../../web/buyer/says.js';
import type { Screen } from '../../../../web/buyer/screen.js';
import { newPage, type PageState } from '../../../../web/buyer/state.js';
import { en } from '../../../../web/buyer/words/en.js';
import { signInOf } from './fake-shop.js';

const FORMAT = formatOf('en', 'EUR');
const STATE = newPage('7', 'k1');
const ORDER = { refundCents: 0 } as OrderView;
const toPay = (leftMs: number): Screen => ({ name: 'to_pay', order: ORDER, leftMs, signedOut: false });
const HELD: Screen = { name: 'held' };
const READY: Screen = { name: 'ready', passMs: null, isOffline: false };

const shown = (screen: Screen, state: Partial<PageState> = {}, isSlow = false): Shown =>
  shownOf(screen, { ...STATE, ...state }, isSlow, en, FORMAT);
const said = (before: Shown | null, now: Shown): string | null => sentenceFor(before, now, en, FORMAT);

describe('screen reader announcements', () => {
  it('announce each new screen: its headline, its note, its sentence', () => {
    expect(said(shown(READY), shown(HELD))).to.equal('It is yours. Your units are held. Your order is being written.');
    const refused = shown({ name: 'failed', reason: 'units_lost' });
    expect(said(shown(HELD), refused)).to.equal(`We are sorry. ${en.reasons.units_lost}`);
    expect(said(null, shown({ name: 'loading' }))).to.equal(null);
    expect(said(null, shown(READY)), 'the page is read anyway').to.equal(null);
    expect(said(shown({ name: 'opening' }), shown(READY))).to.equal(en.says.open);
    expect(said(shown({ name: 'sold_out' }), shown(READY))).to.equal(en.says.back);
    expect(said(shown(READY), shown({ ...READY, passMs: 5000 }))).to.equal(en.says.turn);
    expect(said(shown(READY), shown({ ...READY, isOffline: true }))).to.contain('You are offline');
  });

  it('announce changes while the screen stays', () => {
    const asking = shown({ name: 'asking', code: null });
    const again = shown({ name: 'asking', code: 'overloaded' });
    expect(said(asking, again)).to.contain('Still trying').and.to.contain(en.problems.overloaded);
    expect(said(again, shown({ name: 'asking', code: 'no_answer' }))).to.equal(en.problems.no_answer);
    expect(said(shown(HELD), shown(HELD, {}, true))).to.equal(en.slow);
    expect(said(shown(toPay(500)), shown(toPay(0)))).to.contain('The time to pay is over');
    expect(said(shown(toPay(500)), shown(toPay(400)))).to.equal(null);
  });

  it('announce the opening after a pause without the reason of the last refusal', () => {
    const purchase = { ...STATE.purchase, problem: { code: 'unpaid_pause', retryAfterMs: 2000 } as const };
    const ready = shown(READY, { purchase });
    expect([said(shown({ name: 'pause', leftMs: 10 }), ready), ready.note]).to.deep.equal([en.says.open, null]);
  });

  it('announce each declined payment', () => {
    const declined = shown(toPay(50_000), { moveProblem: 'payment_declined' });
    expect(said(shown(toPay(50_000)), declined)).to.equal(en.problems.payment_declined);
    expect(said(declined, shown(toPay(49_000))), 'it may be said again').to.equal('');
  });

  it('announce some moments of a countdown', () => {
    const counting = (leftMs: number): Shown =>
      shown({ name: 'countdown', leftMs, signedOut: false, place: null }, { signIn: signInOf('ann') });
    expect(said(counting(60_500), counting(59_900))).to.equal('The sale opens in 1 minute.');
    expect(said(shown(toPay(10_500)), shown(toPay(9900)))).to.equal('10 seconds left to pay.');
  });

  it('announce the buyer of a sign-in link without the full name', () => {
    const state = { signIn: signInOf('buyer-1042'), offeredSignIn: signInOf('mallory-7') };
    expect(said(shown(READY), shown({ name: 'other_buyer' }, state)))
      .to.contain('ma…-7')
      .and.not.to.contain('mallory');
  });
});
