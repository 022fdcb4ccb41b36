import type { FoundCoupon, FoundOrder, Role, Sale } from '../api/types.js';

const RANKS: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, admin: 2 };

/** Returns whether the role suffices. Each role includes the roles before it. */
export const may = (role: Role, needed: Role): boolean => RANKS[role] >= RANKS[needed];

const SALE_ACTIONS = [
  'warm',
  'open',
  'pause',
  'resume',
  'edit',
  'reshard',
  'repair',
  'close',
  'cancel',
  'void',
  'delete',
] as const;
export type SaleAction = (typeof SALE_ACTIONS)[number];

/** The role and the sale states that each action needs. The API has the same rules, and its decision counts. */
const ACTIONS: Readonly<Record<SaleAction, { readonly role: Role; readonly states: readonly Sale['state'][] }>> = {
  warm: { role: 'operator', states: ['draft'] },
  open: { role: 'operator', states: ['warm'] },
  pause: { role: 'operator', states: ['open'] },
  resume: { role: 'operator', states: ['paused'] },
  edit: { role: 'admin', states: ['draft', 'warm', 'open', 'paused'] },
  reshard: { role: 'operator', states: ['warm', 'open', 'paused'] },
  repair: { role: 'operator', states: ['warm', 'open', 'paused', 'closed'] },
  close: { role: 'admin', states: ['warm', 'open', 'paused'] },
  cancel: { role: 'admin', states: ['warm'] },
  void: { role: 'admin', states: ['paused', 'closed'] },
  delete: { role: 'admin', states: ['draft'] },
};

/** Returns the actions that this role may take on a sale in its current state, in the order of the buttons. */
export const actionsOn = (sale: Pick<Sale, 'state' | 'retiredAt'>, role: Role): SaleAction[] =>
  SALE_ACTIONS.filter((action) => {
    const { role: needed, states } = ACTIONS[action];
    return may(role, needed) && states.includes(sale.state) && (sale.retiredAt === null || action === 'void');
  });

interface Money {
  readonly state: FoundOrder['state'];
  readonly amountCents: number;
  readonly refundedCents: number;
}

/** Returns what this role may do with an order in its current state. */
export const actionsOnOrder = ({ state, amountCents, refundedCents }: Money, role: Role): ('cancel' | 'refund')[] => {
  if (state === 'pending_payment') return may(role, 'operator') ? ['cancel'] : [];
  const isOwed = state === 'paid' || (state === 'refunded' && refundedCents < amountCents);
  return isOwed && may(role, 'admin') ? ['refund'] : [];
};

/** Returns what may be done with a refund: claim it and pay it by hand, or retry it if it failed. */
export const actionsOnRefund = (
  { state, followedBy }: { readonly state: string; readonly followedBy: string | null },
  role: Role,
): ('retry' | 'done')[] => {
  if (!may(role, 'admin')) return [];
  if (state === 'due') return ['done'];
  return state === 'failed' && followedBy === null ? ['retry', 'done'] : [];
};

/** Whether this role may revoke a coupon in its current state. */
export const mayRevoke = ({ state }: { readonly state: FoundCoupon['state'] }, role: Role): boolean =>
  state === 'free' && may(role, 'admin');
