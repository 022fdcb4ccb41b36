import { useState } from 'preact/hooks';
import type { ListedRefund } from '../api/types.js';
import { actionsOnRefund } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { Badge, Button, Facts, Id, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { TextField } from '../parts/fields.js';
import { useApp, useWords } from '../shell/hooks.js';

export type ShownRefund = Omit<ListedRefund, 'updatedAt'>;
export interface PickedRefund {
  readonly refund: ShownRefund;
  readonly action: 'retry' | 'done';
}

const TONES = { due: 'warn', refunded: 'ok', failed: 'bad' } as const;

export function RefundState({ state }: { readonly state: ListedRefund['state'] }) {
  const { t } = useWords();
  return <Badge tone={TONES[state]}>{t.refunds.states[state]}</Badge>;
}

export function RefundButtons({
  refund,
  onPick,
}: {
  readonly refund: ShownRefund;
  readonly onPick: (picked: PickedRefund) => void;
}) {
  const { me } = useApp();
  const { t } = useWords();
  if (refund.followedBy !== null) return <span class="faint">{t.refunds.followedBy(refund.followedBy)}</span>;
  return (
    <span class="inline">
      {actionsOnRefund(refund, me.role).map((action) => (
        <Button key={action} onClick={() => onPick({ refund, action })}>
          {t.refunds.acts.verb[action]}
        </Button>
      ))}
    </span>
  );
}

/** Asks for confirmation before a failed refund is retried, or a refund is claimed to be paid by hand. */
export function RefundDialog({
  picked: { refund, action },
  onClose,
  onDone,
}: {
  readonly picked: PickedRefund;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api } = useApp();
  const { t, f } = useWords();
  const [reason, setReason] = useState('');
  const { refundId, paymentId, orderId, amountCents, currency, attempts, lastError } = refund;
  const isOrdered = refundId !== null;
  const path = isOrdered ? `order-refunds/${refundId}/${action}` : `refunds/${encodeURIComponent(paymentId)}/done`;
  const run = async (): Promise<string> => {
    await api.ask(`/admin/v1/${path}`, { method: 'POST', ...(isOrdered && { body: { reason } }) });
    return t.refunds.acts.said[action];
  };
  return (
    <Confirm
      title={t.refunds.acts.title[action]}
      text={t.refunds.acts.text[action]}
      verb={t.refunds.acts.verb[action]}
      isDangerous={action === 'done'}
      canRun={!isOrdered || reason.trim() !== ''}
      run={run}
      audit={{ subject: action === 'done' ? `refund:${paymentId}` : `order:${orderId}` }}
      onClose={onClose}
      onDone={onDone}
    >
      {isOrdered && <TextField label={t.common.reason} value={reason} onInput={setReason} hint={t.till.reasonHint} />}
      <Facts
        facts={[
          [t.refunds.payment, <Id text={paymentId} />],
          [t.refunds.amount, <b>{f.money(amountCents, currency)}</b>],
          [t.common.order, <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />],
          [t.refunds.reasons, refund.reason],
          [t.common.attempts, f.number(attempts)],
          [t.refunds.lastError, lastError === null ? '–' : <span lang="en">{lastError}</span>],
          [t.refunds.created, <Time at={refund.createdAt} />],
        ]}
      />
    </Confirm>
  );
}
