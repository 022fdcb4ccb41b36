import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { systemClock } from '../../src/process/system-clock.js';
import { createTokenSigner } from '../../src/http/token.js';
import type { Role } from '../../src/core/roles.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { found } from '../chaos/harness/wait.js';
import { accessibilityFaults } from '../helpers/accessibility.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { silentLog } from '../helpers/silent-log.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';
import { openConsole, type Opened } from './console/looks.js';
import { takePicture, TAKES_PICTURES } from './pictures.js';
import { publishRules, untilInForce } from './visitor.js';

describe('the console on a running system', () => {
  let api: Program;
  let started: StartedBrowser;
  let opened: Opened;
  const system = useSystem(async ({ programs }) => {
    [api, , , started] = await Promise.all([
      programs.start('api'),
      programs.start('worker', { env: { WORKER_RETRY_FIRST_MS: '10' } }),
      programs.start('keeper', {
        env: { KEEPER_EVERY_MS: '500', REDRIVE_AFTER_MS: '600000', PAYMENT_PROVIDER: 'simulator' },
      }),
      startChromium(),
    ]);
  });
  afterEach(() => started?.close());

  const tokenOf = (role: Role | 'buyer'): string =>
    createTokenSigner(system.stack.env.JWT_SECRET)({
      userId: `test-${role}`,
      roles: role === 'buyer' ? [] : [role],
      ttlMs: 3_600_000,
    });
  const operatorsUrl = (): string => api.operatorsUrl;

  /** Opens a screen with a pasted token. */
  const open = async (role: Role | 'buyer', path = ''): Promise<Page> => {
    opened = await openConsole(started.browser, { origin: operatorsUrl() });
    const { page } = opened;
    await page.goto(`${operatorsUrl()}/console/${path}`);
    await signIn(page, role);
    return page;
  };
  const signIn = async (page: Page, role: Role | 'buyer'): Promise<void> => {
    await page.getByLabel('Token', { exact: true }).fill(tokenOf(role));
    await page.getByRole('button', { name: 'Sign in' }).click();
  };
  const audited = async (subject: string): Promise<string[]> => {
    const { json } = await ask(`${operatorsUrl()}/admin/v1/audit?subject=${encodeURIComponent(subject)}`, {
      token: tokenOf('viewer'),
    });
    return (json.entries as { action: string; actor: string }[])
      .filter(({ actor }) => actor.startsWith('test-'))
      .map(({ action }) => action);
  };

  it('admits every role under its content security policy, and keeps the token in the tab alone', async () => {
    const token = tokenOf('operator');
    opened = await openConsole(started.browser, { origin: operatorsUrl() });
    const { page } = opened;
    const wrong: string[] = [];
    page.on('console', (message) => void (message.type() === 'error' && wrong.push(message.text())));
    page.on('requestfailed', (asked) => void wrong.push(asked.url()));
    await page.goto(`${operatorsUrl()}/console`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    expect([...wrong, ...opened.faults], 'before anything is asked').to.deep.equal([]);

    await signIn(page, 'buyer');
    await page.getByText('This token has no role for operators.').waitFor();
    await page.getByLabel('Token', { exact: true }).fill('a.b.c');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The api refuses this token').waitFor();

    const urls: string[] = [];
    const logged: string[] = [];
    page.on('request', (request) => void urls.push(request.url()));
    page.on('console', (message) => void logged.push(message.text()));
    await page.getByLabel('Token', { exact: true }).fill(`Bearer ${token}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Live', level: 1 }).waitFor();
    await page.locator('.sign.ok').waitFor();
    for (const path of ['messages/lag', 'rules/form', 'audit', 'health', 'sales/all']) {
      await page.goto(`${operatorsUrl()}/console/${path}`); // reloads each time, because the tab remembers
      await page.locator('main h1').waitFor();
      await page.locator('main .loading').first().waitFor({ state: 'detached' });
    }
    const kept = (await page.evaluate(
      'JSON.stringify([Object.values(localStorage), document.cookie, document.documentElement.outerHTML])',
    )) as string;
    expect(
      [...urls, ...logged, kept, page.url()].filter((text) => text.includes(token)),
      'where the token must not be',
    ).to.deep.equal([]);
    expect(await page.evaluate('Object.values(sessionStorage)')).to.deep.equal([token]);
    for (const program of system.programs.all)
      expect(program.log.includes(token), `${program.name} logs the token`).to.equal(false);
    expect(opened.faults).to.deep.equal([]);

    const other = await opened.context.newPage();
    await other.goto(`${operatorsUrl()}/console`);
    await other.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.locator('.account-button').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.evaluate('sessionStorage.length')).to.equal(0);
  });

  it('pauses, resumes and empties a waiting room, sets its rate and admits buyers, each after a preview', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 5 });
    const publish = (rules: object) => publishRules(stack.env.JWT_SECRET, operatorsUrl(), rules);
    const rate = async () => {
      const { json } = await ask(`${operatorsUrl()}/admin/v1/rules`, { token: tokenOf('viewer') });
      return (json.rules as { queue: { admitPerSecond: number } }).queue.admitPerSecond;
    };
    // The rate admits no buyer by itself in this time.
    await untilInForce(
      operatorsUrl(),
      await publish({ queue: { mode: 'on', sales: [saleId], admitPerSecond: 0.001 } }),
    );
    try {
      const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
      for (let nth = 0; nth < 9; nth++) {
        const token = buyers.token(`w${nth}`);
        const { json } = await ask(`${api.url}/v1/sales/${saleId}/queue`, { method: 'POST', token });
        expect(json.position).to.equal(nth + 1);
      }
      const page = await open('operator', `sales/${saleId}`);
      const room = page.locator('section', { has: page.getByRole('heading', { name: 'Waiting room' }) });
      const question = page.getByRole('dialog');
      const facts = async (of = room) =>
        Object.fromEntries(
          await of
            .locator('.facts > div')
            .evaluateAll((rows) =>
              rows.map((row) => [...row.children].map(({ textContent }) => textContent as string)),
            ),
        ) as Record<string, string>;
      const asks = (name: string) => room.getByRole('button', { name, exact: true }).click();
      const answersWith = async (name: string, result: string | RegExp): Promise<void> => {
        await question.getByRole('button', { name, exact: true }).click();
        await question.getByText(result).waitFor();
        await question.getByRole('button', { name: 'Close' }).last().click();
      };
      const shows = (text: string) => room.getByText(text, { exact: true }).waitFor();
      await shows('2h 30m');
      expect(await facts()).to.include({ 'Buyers waiting': '9', 'Buyers admitted': '0' });

      await asks('Admit buyers');
      await question.getByLabel('Buyers to admit').fill('0');
      await question.getByText('A whole number from 1').waitFor();
      await question.getByLabel('Buyers to admit').fill('3');
      expect(await facts(question)).to.deep.equal({ 'Buyers waiting': '9 → 6', 'Buyers admitted': '0 → 3' });
      expect(await accessibilityFaults(page)).to.deep.equal([]);
      if (TAKES_PICTURES) await takePicture(page, 'console/waiting-room-question-light.png');
      await answersWith('Admit buyers', '3 buyers were admitted.');
      await shows('1h 40m');

      await asks('Pause the rooms');
      await question.getByRole('button', { name: 'Cancel' }).click();
      expect(await rate(), 'a cancelled question changes nothing').to.equal(0.001);
      await asks('Pause the rooms');
      await answersWith('Pause the rooms', /^The rate is set: version \d+ of the rules\.$/);
      await shows('until the rooms are resumed');
      if (TAKES_PICTURES) await takePicture(page, 'console/waiting-room-light.png');
      await asks('Resume the rooms');
      await question.getByText('Paused → 0.001').waitFor(); // the rate before the pause
      await answersWith('Resume the rooms', 'The rate is set');
      expect(await rate()).to.equal(0.001);
      await shows('1h 40m');
      await asks('Set the rate');
      await question.getByLabel('Buyers admitted per second').fill('0.002');
      await answersWith('Set the rate', 'The rate is set');
      await shows('50m');

      await asks('Empty the room');
      await question.getByLabel(`Type ${saleId} to confirm`).fill(saleId);
      await answersWith('Empty the room', 'The places of 6 buyers ended.');
      await shows('0ms');
      expect(await room.getByRole('button', { name: 'Admit buyers', exact: true }).count(), 'nobody waits').to.equal(0);
      expect(await audited(`sale:${saleId}`)).to.deep.equal(['room.emptied', 'room.admitted']);
    } finally {
      await publish({});
    }
  });

  /**
   * Sells one unit to each of these buyers, and pays the orders of some.
   * @returns the order of each buyer
   */
  async function sold(
    saleId: string,
    users: readonly string[],
    paying: readonly string[],
  ): Promise<ReadonlyMap<string, string>> {
    const { stack } = system;
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    for (const user of users) await buyers.buy(user);
    const sql = 'SELECT id, user_id AS user, amount_cents AS cents FROM orders WHERE sale_id = ?';
    const read = () => stack.mysql.query<{ id: string; user: string; cents: string }>(sql, [saleId]);
    const rows = await found('every order', async () => {
      const now = await read();
      return now.length === users.length ? now : null;
    });
    const transitions = createOrderTransitions(stack.mysql, { clock: systemClock, log: silentLog });
    for (const { id, user, cents } of rows.filter((row) => paying.includes(row.user))) {
      const payment = { paymentId: `simulated-test-${id}`, amountCents: Number(cents) };
      expect(await transitions.pay(id, payment), user).to.equal('paid');
    }
    return new Map(rows.map(({ id, user }) => [user, id]));
  }
  const twice = (button: { click(): void }) => (button.click(), button.click());

  it('cancels an unpaid order, and refunds a paid order in parts', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 3 });
    const orders = await sold(saleId, ['ann', 'bob'], ['bob']);
    const page = await open('admin', `purchases/${orders.get('ann')}`);
    const question = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Cancel the order' }).click();
    await question.getByLabel('Reason').fill('she called');
    await question.getByRole('button', { name: 'Cancel the order' }).evaluate(twice);
    await question.getByText('The order is cancelled.').waitFor();
    await page.reload();
    await page.locator('.facts').getByText('Cancelled', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Cancel the order' }).count()).to.equal(0);
    expect(await audited(`order:${orders.get('ann')}`)).to.deep.equal(['order.cancelled']);

    await page.goto(`${operatorsUrl()}/console/purchases/${orders.get('bob')}`);
    await page.getByRole('button', { name: 'Refund', exact: true }).click();
    await question.getByRole('button', { name: 'A part' }).click();
    await question.getByLabel('Amount (EUR)').fill('5');
    await question.getByLabel('Reason').fill('a scratch');
    await question.getByRole('button', { name: 'Refund €5.00' }).evaluate(twice);
    await question.getByText('The refund is ordered.').waitFor();
    await question.getByRole('button', { name: 'Close' }).last().click();
    const part = page.getByRole('row').filter({ hasText: '€5.00' });
    await part.getByText('Refunded').waitFor();
    await page.reload();
    await part.getByText('Refunded').waitFor();
    await page.getByRole('button', { name: 'Refund', exact: true }).click();
    await question.getByLabel('Sell the units again').check();
    await question.getByLabel('Reason').fill('he sent it back');
    await question.getByRole('button', { name: 'Refund €14.99' }).click();
    await question.getByText('The refund is ordered.').waitFor();
    await question.getByRole('button', { name: 'Close' }).last().click();
    await page.locator('.facts').getByText('Refunded, for sale again').waitFor();
    const refunds = await createOrderRefunds(stack.mysql, { clock: systemClock }).refundsOf(orders.get('bob') ?? '');
    expect(refunds.map(({ amountCents, state, reason }) => [amountCents, state, reason])).to.deep.equal([
      [500, 'refunded', 'a scratch'],
      [1499, 'refunded', 'he sent it back'],
    ]);
    expect(opened.faults).to.deep.equal([]);
    expect(await expectInvariants(stack, saleId)).to.include({ rows: 2, unitsLeft: 3 });
  });

  it('revokes a coupon with a reason, and reports when an open payment holds the coupon', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 3, coupon: '500 30d' });
    const orderId = (await sold(saleId, ['cat'], ['cat'])).get('cat') ?? '';
    const sql = 'SELECT code FROM coupon_codes WHERE order_id = ?';
    const code = await found('the coupon', async () => {
      const [coupon] = await stack.mysql.query<{ code: string }>(sql, [orderId]);
      return coupon?.code ?? null;
    });
    const become = (state: string) =>
      stack.mysql.execute('UPDATE coupon_codes SET state = ? WHERE code = ?', [state, code]);
    const page = await open('admin', `purchases/${orderId}`);
    const coupon = page.getByRole('row').filter({ hasText: code });
    const question = page.getByRole('dialog');
    const revoke = async (): Promise<void> => {
      await coupon.getByRole('button', { name: 'Revoke' }).click();
      await question.getByLabel('Reason').fill('shared in public');
      await question.getByRole('button', { name: 'Revoke' }).evaluate(twice);
    };
    await coupon.getByRole('button', { name: 'Revoke' }).waitFor();
    await become('reserved');
    await revoke();
    await question.getByText('An open payment holds this coupon').waitFor();
    await question.getByRole('button', { name: 'Close' }).last().click();
    await become('free');
    await page.reload();
    await revoke();
    await question.getByText('The coupon is revoked.').waitFor();
    await question.getByRole('button', { name: 'Close' }).last().click();
    await coupon.getByText('Revoked', { exact: true }).waitFor();
    expect(await coupon.getByRole('button', { name: 'Revoke' }).count()).to.equal(0);
    expect(await audited(`coupon:${code}`)).to.deep.equal(['coupon.revoked']);
    expect(opened.faults).to.deep.equal([]);
  });

  it('shows purchases as they happen', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 3 });
    const page = await open('viewer', 'live');
    const row = page.getByRole('row').filter({ has: page.getByText(saleId, { exact: true }) });
    await row.waitFor({ timeout: 20_000 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    for (const user of ['kim', 'lea', 'max', 'ned']) await buyers.buy(user);
    await row
      .locator('.stock-words')
      .getByText(/^3 sold/)
      .waitFor({ timeout: 20_000 });
    await page.goto(`${operatorsUrl()}/console/sales/${saleId}`);
    await page
      .locator('.totals')
      .getByText(/^Landed 3$/)
      .waitFor({ timeout: 20_000 });
    await page.locator('.totals').getByText('Sold out').waitFor();
    expect(await expectInvariants(stack, saleId)).to.include({ rows: 3, unitsLeft: 0 });
  });
});
