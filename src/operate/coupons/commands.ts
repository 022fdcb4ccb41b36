import { Command, InvalidArgumentError, Option } from 'commander';
import { couponCode } from '../../contract/coupons.js';
import { amountText } from '../../core/amount-text.js';
import { COUPON_REFUSALS, COUPON_STATES, type Coupon, type CouponState } from '../../core/coupon.js';
import type { CouponFilter } from '../../core/ports/coupons.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { EXPORT_FORMATS, type ExportFormat } from '../../http/export-lines.js';
import { couponBody } from '../../http/routes/coupons.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { withConfigured } from '../../process/connections.js';
import { limitOption, operatorName, parseId, parseSaleId, parseUserId, subcommand } from '../../process/options.js';
import { isoTime, print, printAll, printError, tableLine } from '../../process/print.js';
import { CODES_MAX } from './coupon-desk.js';
import { couponPages } from './coupon-pages.js';
import { openCoupons, type CouponServices } from './services.js';

interface FilterFlags {
  readonly user?: string;
  readonly sale?: string;
  readonly state?: CouponState;
}
interface RevokeFlags {
  readonly sale?: string;
  readonly code?: readonly string[];
  readonly reason: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}
interface ListFlags extends FilterFlags {
  readonly limit: number;
  readonly json?: boolean;
}

const EXAMPLES = `
Each paid order of a sale with --coupon brings its buyer a coupon. The buyer uses it at a payment, or your shop redeems it.

Examples:
  seckill coupons list --user alice
  seckill coupons show 7KQ2MZP4WX
  seckill coupons redeem 7KQ2MZP4WX --order shop-4711
  seckill coupons export --sale 7 --state redeemed > coupons.csv
  seckill coupons revoke --sale 7 --reason 'wrong terms' --dry-run
  seckill coupons revoke --code 7KQ2MZP4WX --reason 'shared in public'

A repeated redeem with the same --order changes nothing and succeeds. So does a repeated revoke.
To issue no more coupons, first run \`seckill sale edit --coupon none\`. A revoke leaves alone the coupons that are used or expired.
An open payment keeps its coupon and can still succeed: run revoke again after half an hour.
Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (no such coupon, it is used or expired, a payment holds it, or MySQL is down), 2 wrong usage.`;

export function couponsCommand(): Command {
  const coupons = new Command('coupons')
    .description('find, export, redeem and revoke coupons')
    .addHelpText('after', EXAMPLES);
  filtered(subcommand(coupons, 'list', 'print one line per coupon, newest first'))
    .addOption(limitOption('coupons'))
    .option('--json', 'one JSON line per coupon')
    .action((flags: ListFlags) => run((services) => list(services, flags)));
  subcommand(coupons, 'show', 'print one coupon')
    .argument('<code>', 'code of the coupon', parseCode)
    .option('--json', 'print one JSON line')
    .action((code: string, { json }: { json?: boolean }) =>
      run(async (services) => {
        const coupon = await services.coupons.find(code);
        if (coupon === null) throw new CliError(`there is no coupon ${code}.`);
        show(coupon, json);
      }),
    );
  subcommand(coupons, 'redeem', 'redeem a coupon for an order of your shop')
    .argument('<code>', 'code of the coupon', parseCode)
    .requiredOption('--order <reference>', 'your reference of the order: 1 to 64 of A-Z a-z 0-9 _ -', parseId)
    .option('--json', 'print one JSON line')
    .action((code: string, { order, json }: { order: string; json?: boolean }) =>
      run(async ({ couponDesk }) => {
        const answer = await couponDesk.redeem(code, order, operatorName());
        if (answer.outcome === 'refused') throw new CliError(`${code}: ${COUPON_REFUSALS[answer.why]}`);
        show(answer.coupon, json);
      }),
    );
  subcommand(coupons, 'revoke', 'end the free coupons of a sale, or single coupons')
    .option('--sale <saleId>', 'coupons that this sale brought', parseSaleId)
    .option('--code <code...>', `only coupons with these codes, at most ${CODES_MAX}`, parseCodes)
    .requiredOption('--reason <text>', 'for the audit log')
    .option('--dry-run', 'only count')
    .option('--json', 'print one JSON line')
    .action((flags: RevokeFlags) => run((services) => revoke(services, flags)));
  filtered(subcommand(coupons, 'export', 'print coupons as CSV or JSON lines'))
    .addOption(new Option('--format <format>', 'output format').choices(EXPORT_FORMATS).default('csv'))
    .action(({ format, ...flags }: FilterFlags & { readonly format: ExportFormat }) =>
      run(async ({ coupons: store }) => {
        for await (const text of couponPages(store, filterOf(flags), format)) if (!(await printAll(text))) return;
      }),
    );
  return coupons;
}

const filtered = (command: Command): Command =>
  command
    .option('--user <userId>', 'only coupons of this buyer', parseUserId)
    .option('--sale <saleId>', 'only coupons that this sale brought', parseSaleId)
    .addOption(new Option('--state <state>', 'only coupons in this state').choices(COUPON_STATES));

const filterOf = ({ user, sale, state }: FilterFlags): CouponFilter =>
  withoutUndefined({ userId: user, saleId: sale, state });

function parseCode(text: string): string {
  const read = couponCode.safeParse(text);
  if (!read.success) throw new InvalidArgumentError('must be a coupon code: 10 digits and letters such as 7KQ2MZP4WX.');
  return read.data;
}

function parseCodes(text: string, before: readonly string[] = []): readonly string[] {
  if (before.length === CODES_MAX) throw new InvalidArgumentError(`must be at most ${CODES_MAX} codes.`);
  return [...before, parseCode(text)];
}

const run = (work: (services: CouponServices) => Promise<void>): Promise<void> =>
  withConfigured('coupons', ['mysql', 'redis'], (connections) => work(openCoupons(connections)));

async function revoke({ couponDesk }: CouponServices, flags: RevokeFlags): Promise<void> {
  const { sale, code: codes, reason, dryRun = false, json } = flags;
  if (sale === undefined && codes === undefined) throw new UsageError('give --sale, --code or both.');
  const wish = { dryRun, reason, ...withoutUndefined({ saleId: sale, codes }) };
  let [revoked, reserved] = [0, 0];
  for (let after: string | null = null; ;) {
    const step = await couponDesk.revokeNext(wish, after, operatorName());
    if (step.outcome === 'not_found') {
      const { code } = step;
      const ofSale = sale === undefined ? '' : ` of sale ${sale}`;
      throw new CliError(code === null ? `there is no sale ${sale}.` : `there is no coupon ${code}${ofSale}.`);
    }
    revoked += step.revoked;
    reserved += step.reserved;
    after = step.next;
    if (after === null) break;
  }
  print(
    json ? JSON.stringify({ dryRun, revoked, reserved }) : `${revoked} coupons ${dryRun ? 'to revoke' : 'revoked'}.`,
  );
  if (reserved === 0) return;
  printError(`Open payments hold ${reserved} more. Run this again after half an hour.`);
  if (!dryRun) process.exitCode = 1;
}

async function list({ coupons }: CouponServices, { limit, json, ...flags }: ListFlags): Promise<void> {
  const found = await coupons.list(filterOf(flags), { max: limit });
  if (!json) print(line('code', 'state', 'value', 'least amount', 'expires', 'order', 'used by', 'user'));
  for (const coupon of found) print(json ? JSON.stringify(couponBody(coupon)) : lineOf(coupon));
  if (!json && found.length === limit) printError('There may be more: raise --limit, or use `coupons export`.');
}

const show = (coupon: Coupon, json: boolean | undefined): void =>
  print(json ? JSON.stringify(couponBody(coupon)) : lineOf(coupon));

function lineOf(coupon: Coupon): string {
  const { valueCents, percent, minCents, currency } = coupon;
  const value = valueCents === null ? `${percent}%` : amountText(valueCents, currency);
  return line(
    coupon.code,
    coupon.state,
    value,
    amountText(minCents, currency),
    isoTime(coupon.expiresAtMs),
    coupon.orderId,
    coupon.usedOrderId ?? coupon.reference ?? '-',
    coupon.userId,
  );
}

const line = tableLine(10, 8, 14, 14, 24, 19, 19);
