import { randomBytes } from 'node:crypto';
import type { NewSale, Sale } from '../../../src/core/sale.js';
import { createTokenSigner } from '../../../src/http/token.js';
import type { SaleCreated } from '../../../src/sales/sale-admin.js';
import { ask } from './http.js';
import type { Program } from './programs.js';
import type { StackControls } from './stack-controls.js';
import { found } from './wait.js';

/** Actor of every action on a sale, for the audit log. */
export const ACTOR = 'a-test';

export type SaleParts = Partial<NewSale>;

/** Creates a sale that is not warmed: ten units, one per buyer, open since a minute ago, for an hour. */
export async function draftSale(
  { admin }: { readonly admin: { create(sale: NewSale, actor: string): Promise<Sale | SaleCreated> } },
  parts: SaleParts = {},
): Promise<Sale> {
  const nowMs = Date.now();
  const sale = {
    sku: `test-${randomBytes(6).toString('hex')}`,
    title: 'A thing in a test',
    priceCents: 1999,
    currency: 'EUR',
    stock: 10,
    limitPerBuyer: 1,
    buckets: 1,
    opensAtMs: nowMs - 60_000,
    closesAtMs: nowMs + 3_600_000,
    warmBeforeMs: null,
    paymentWindowMs: null,
    ...parts,
  };
  const made = await admin.create(sale, ACTOR);
  if (!('outcome' in made)) return made;
  if (made.outcome !== 'created') throw new Error(`the sale ${made.outcome}`);
  return made.sale;
}

/** Creates, warms and opens a sale, by default like `draftSale`. */
export async function openSale(stack: Pick<StackControls, 'admin'>, parts: SaleParts = {}): Promise<Sale> {
  const { saleId } = await draftSale(stack, parts);
  await stack.admin.warm(saleId, ACTOR);
  const opened = await stack.admin.open(saleId, ACTOR);
  if (opened.outcome !== 'done') throw new Error(`sale ${saleId} could not be opened: ${opened.outcome}`);
  return opened.sale;
}

/** Lets programs reconcile data that a scenario has planted seconds ago. */
export const RECONCILE_ENV = {
  RECONCILE_SAFE_AGE_MS: '1000',
  RECONCILE_MARKER_AGE_MS: '1000',
  COMPENSATE_RETRY_FIRST_MS: '1000',
  COMPENSATE_LEASE_MS: '1000',
};

const TTL_MS = 3_600_000;
/** The first repair starts a client of the broker, which may need several attempts. */
const RECONCILE_TIMEOUT_MS = 100_000;
const RETRY_MS = 200;

export interface Reconciled {
  /** `match`, `findings`, `partly`, or the code of a problem. */
  readonly outcome: unknown;
  /** Sorted kinds with their buyer or units: `leak ann`, `drift -2`. */
  readonly found: readonly string[];
  /** `leak compensated`, sorted. */
  readonly jobs: readonly string[];
}

/** Reconciles a sale at an api, as an operator does. With `apply` it repairs the findings and waits for the end. */
export async function reconcileSale(
  { env }: Pick<StackControls, 'env'>,
  api: Program,
  saleId: string,
  { apply = false }: { readonly apply?: boolean } = {},
): Promise<Reconciled> {
  const token = createTokenSigner(env.JWT_SECRET)({ userId: ACTOR, roles: ['admin'], ttlMs: TTL_MS });
  const url = `${api.operatorsUrl}/admin/v1/reconcile/sales/${saleId}${apply ? '?apply=true' : ''}`;
  // waits for a starting keeper, which reconciles every sale, and for the lease of a killed keeper
  const json = await found(
    `sale ${saleId} is reconciled`,
    async () => {
      const answer = await ask(url, { method: 'POST', token, timeoutMs: RECONCILE_TIMEOUT_MS });
      return answer.json.code === 'reconcile_running' ? null : answer.json;
    },
    { everyMs: RETRY_MS },
  );
  const {
    outcome,
    code,
    findings = [],
    jobs = [],
  } = json as {
    readonly outcome?: string;
    readonly code?: string;
    readonly findings?: readonly { readonly kind: string; readonly userId?: string; readonly units?: number }[];
    readonly jobs?: readonly { readonly kind: string; readonly state: string }[];
  };
  return {
    outcome: outcome ?? code,
    found: findings.map(({ kind, userId, units }) => [kind, userId ?? units].join(' ').trimEnd()).sort(),
    jobs: jobs.map(({ kind, state }) => `${kind} ${state}`).sort(),
  };
}
