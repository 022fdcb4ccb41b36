import { useState } from 'preact/hooks';
import type { FoundCoupon, RevokedStep } from '../api/types.js';
import { mayRevoke } from '../logic/permissions.js';
import { Button, Facts, Id, Panel, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { TextField } from '../parts/fields.js';
import { Freshness, Note } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { useApp, useResource, useWords } from '../shell/hooks.js';

/** Shows the coupons that an order brought or uses, and revokes a free one. */
export function OrderCoupons({ orderId, everyMs }: { readonly orderId: string; readonly everyMs: number }) {
  const { me } = useApp();
  const { t, f } = useWords();
  const words = t.till.coupon;
  const coupons = useResource<{ coupons: readonly FoundCoupon[] }>(`/admin/v1/coupons?order=${orderId}`, { everyMs });
  const [picked, setPicked] = useState<FoundCoupon | null>(null);
  const rows = coupons.data?.coupons ?? [];
  if (rows.length === 0) return null;
  const columns: readonly Column<FoundCoupon>[] = [
    { name: words.code, cell: ({ code }) => <Id text={code} /> },
    { name: t.common.state, width: '96px', cell: ({ state }) => t.till.coupon.states[state] },
    {
      name: words.value,
      isNumber: true,
      width: '100px',
      phoneWidth: '76px',
      cell: ({ valueCents, percent, currency }) =>
        valueCents === null ? `${percent}%` : f.money(valueCents, currency),
    },
    {
      name: words.role,
      hides: 'phone',
      cell: (coupon) => (coupon.orderId === orderId ? words.brought : words.used),
    },
    { name: words.expires, hides: 'narrow', width: '160px', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
    {
      name: t.common.action,
      width: '124px',
      phoneWidth: '100px',
      cell: (coupon) => mayRevoke(coupon, me.role) && <Button onClick={() => setPicked(coupon)}>{words.revoke}</Button>,
    },
  ];
  return (
    <Panel title={t.till.coupons} flush actions={<Freshness {...coupons} />}>
      <Table
        label={t.till.coupons}
        columns={columns}
        rows={rows}
        keyOf={({ code }) => code}
        error={coupons.error}
        onRetry={coupons.reload}
      />
      {picked && <RevokeDialog coupon={picked} onClose={() => setPicked(null)} onDone={coupons.reload} />}
    </Panel>
  );
}

function RevokeDialog({
  coupon: { code, userId, expiresAt },
  onClose,
  onDone,
}: {
  readonly coupon: FoundCoupon;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api } = useApp();
  const { t } = useWords();
  const words = t.till.coupon;
  const [reason, setReason] = useState('');
  const run = async () => {
    const body = { codes: [code], reason };
    const { revoked, reserved } = await api.ask<RevokedStep>('/admin/v1/coupons/revoke', { method: 'POST', body });
    if (revoked > 0) return words.revoked;
    return <Note tone="warn">{reserved > 0 ? words.held : words.notFree}</Note>;
  };
  return (
    <Confirm
      title={words.revokeTitle}
      text={words.revokeText}
      verb={words.revoke}
      isDangerous
      canRun={reason.trim() !== ''}
      run={run}
      audit={{ subject: `coupon:${code}` }}
      onClose={onClose}
      onDone={onDone}
    >
      <TextField label={t.common.reason} value={reason} onInput={setReason} hint={t.till.reasonHint} />
      <Facts
        facts={[
          [words.code, <Id text={code} />],
          [t.common.user, userId],
          [words.expires, <Time at={expiresAt} />],
        ]}
      />
    </Confirm>
  );
}
