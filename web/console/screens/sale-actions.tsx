import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { LiveSale, MovedSale, Sale } from '../api/types.js';
import { inMainUnit } from '../../../src/core/currency.js';
import { localTimeField } from '../logic/format.js';
import type { SaleAction } from '../logic/permissions.js';
import { saleEdit } from '../logic/sale-edit.js';
import { Facts, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Check, TextField } from '../parts/fields.js';
import { useApp, useWords } from '../shell/hooks.js';

interface Props {
  readonly action: Exclude<SaleAction, 'void'>;
  readonly sale: Sale;
  readonly now: LiveSale | null;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Confirms an action on a sale: shows its current state, and its state after the action. */
export function SaleActionDialog(props: Props) {
  switch (props.action) {
    case 'edit':
      return <EditDialog {...props} />;
    case 'reshard':
      return <ReshardDialog {...props} />;
    case 'repair':
      return <RepairDialog {...props} />;
    case 'warm':
    case 'open':
    case 'pause':
    case 'resume':
    case 'close':
    case 'cancel':
    case 'delete':
      return <MoveDialog {...props} />;
  }
}

function useAsked({ action, sale, onClose, onDone }: Props) {
  const { t } = useWords();
  const title = `${t.sale.actions[action]}: ${sale.title}`;
  return {
    title,
    text: t.sale.does[action],
    verb: t.sale.actions[action],
    audit: { subject: `sale:${sale.saleId}` },
    onClose,
    onDone,
  };
}

/** Shows the state of the sale, and its next state. */
function Standing({
  sale,
  now,
  then,
}: {
  readonly sale: Sale;
  readonly now: LiveSale | null;
  readonly then?: ComponentChildren;
}) {
  const { t, f } = useWords();
  const shown = (value: number | null | undefined): string =>
    value === null || value === undefined ? '–' : f.number(value);
  return (
    <Facts
      facts={[
        [
          t.common.state,
          <>
            {t.sale.states[sale.state]}
            {then && (
              <>
                {' '}
                → <b>{then}</b>
              </>
            )}
          </>,
        ],
        [t.live.stock, f.number(sale.stock)],
        [t.live.sold, f.number(now?.sold ?? sale.sold)],
        [t.live.held, shown(now?.held)],
        [t.live.left, shown(now?.left)],
        [t.live.accepted, `${shown(now?.acceptedPerSecond)}${t.live.perSecond}`],
        [t.sales.closes, <Time at={sale.closesAt} />],
      ]}
    />
  );
}

const BECOMES = {
  warm: 'warm',
  open: 'open',
  pause: 'paused',
  resume: 'open',
  close: 'closed',
  cancel: 'closed',
} as const;

function MoveDialog(props: Props) {
  const { action, sale, now } = props;
  const { api } = useApp();
  const { t } = useWords();
  const isFinal = action === 'close' || action === 'cancel' || action === 'delete';
  const run = async (): Promise<string> => {
    const path = `/admin/v1/sales/${sale.saleId}`;
    if (action === 'delete') {
      await api.ask(path, { method: 'DELETE' });
      return t.sale.done.deleted;
    }
    if (action === 'cancel') {
      await api.ask(`${path}/cancel`, { method: 'POST' });
      return t.sale.done.ended;
    }
    const moved = await api.ask<MovedSale>(`${path}/${action}`, { method: 'POST' });
    const done = t.sale.done.moved(t.sale.states[moved.state]);
    return moved.inRepair ? `${done} ${t.sale.done.inRepair}` : done;
  };
  const becomes = action in BECOMES ? t.sale.states[BECOMES[action as keyof typeof BECOMES]] : undefined;
  return (
    <Confirm {...useAsked(props)} isDangerous={isFinal} {...(isFinal && { typed: sale.saleId })} run={run}>
      <Standing sale={sale} now={now} then={becomes} />
    </Confirm>
  );
}

function EditDialog(props: Props) {
  // Keeps the sale as it was when the dialog was opened, so that changes by another user are not part of this change.
  const [sale] = useState(props.sale);
  const { api } = useApp();
  const { t, f } = useWords();
  const [typed, setTyped] = useState({
    title: sale.title,
    stock: String(sale.stock),
    closesAt: localTimeField(Date.parse(sale.closesAt)),
    paymentWindow: sale.paymentWindow ?? '',
    price: String(inMainUnit(sale.priceCents, sale.currency)),
  });
  const set = (name: keyof typeof typed) => (text: string) => setTyped({ ...typed, [name]: text });
  const { change, wrong } = saleEdit(sale, typed);
  const names = Object.keys(change);
  const run = async (): Promise<string> => {
    await api.ask(`/admin/v1/sales/${sale.saleId}`, { method: 'PATCH', body: change });
    return t.sale.done.edited;
  };
  const now: Readonly<Record<string, ComponentChildren>> = {
    title: sale.title,
    stock: f.number(sale.stock),
    closesAt: <Time at={sale.closesAt} />,
    paymentWindow: sale.paymentWindow ?? t.sale.defaultWindow,
    priceCents: f.money(sale.priceCents, sale.currency),
  };
  const then: Readonly<Record<string, ComponentChildren>> = {
    title: change.title,
    stock: change.stock !== undefined && f.number(change.stock),
    closesAt: change.closesAt !== undefined && <Time at={change.closesAt} />,
    paymentWindow: change.paymentWindow,
    priceCents: change.priceCents !== undefined && f.money(change.priceCents, sale.currency),
  };
  const labels: Readonly<Record<string, string>> = {
    title: t.sales.fields.title,
    stock: t.sales.fields.stock,
    closesAt: t.sales.closes,
    paymentWindow: t.sales.fields.paymentWindow,
    priceCents: t.sale.price,
  };
  return (
    <Confirm {...useAsked(props)} run={run} canRun={names.length > 0 && wrong.length === 0}>
      <div class="form-grid">
        <TextField label={t.sales.fields.title} value={typed.title} onInput={set('title')} />
        <TextField
          label={t.sales.fields.stock}
          type="number"
          value={typed.stock}
          onInput={set('stock')}
          error={wrong.includes('stock') ? t.sale.badStock : undefined}
        />
        <TextField
          label={t.sales.closes}
          type="datetime-local"
          value={typed.closesAt}
          onInput={set('closesAt')}
          error={wrong.includes('closesAt') ? t.sale.badClosesAt : undefined}
        />
        <TextField
          label={t.sales.fields.paymentWindow}
          value={typed.paymentWindow}
          hint={t.sale.windowHint}
          onInput={set('paymentWindow')}
          error={wrong.includes('paymentWindow') ? t.sale.badWindow : undefined}
        />
        {sale.state === 'draft' && (
          <TextField
            label={`${t.sale.price} (${sale.currency})`}
            type="number"
            value={typed.price}
            onInput={set('price')}
            error={wrong.includes('price') ? t.sale.badPrice : undefined}
          />
        )}
      </div>
      {names.length === 0 ? (
        <p class="hint">{t.sale.unchanged}</p>
      ) : (
        <Facts
          facts={names.map(
            (name) =>
              [
                labels[name] ?? name,
                <>
                  {now[name]} → <b>{then[name]}</b>
                </>,
              ] as const,
          )}
        />
      )}
    </Confirm>
  );
}

function ReshardDialog(props: Props) {
  const { sale, now } = props;
  const { api } = useApp();
  const { t, f } = useWords();
  const [buckets, setBuckets] = useState(String(Math.max(2, sale.buckets * 2)));
  const wanted = Number(buckets);
  const run = async (): Promise<string> => {
    const made = await api.ask<{ buckets: number; lockedMs: number }>(`/admin/v1/sales/${sale.saleId}/reshard`, {
      method: 'POST',
      body: { buckets: wanted },
    });
    return t.sale.done.resharded(f.number(made.buckets), f.duration(made.lockedMs));
  };
  return (
    <Confirm
      {...useAsked(props)}
      isDangerous
      run={run}
      canRun={Number.isInteger(wanted) && wanted >= 2 && wanted !== sale.buckets}
    >
      <TextField label={t.sale.bucketsWanted} type="number" value={buckets} onInput={setBuckets} />
      <Facts
        facts={[
          [
            t.sale.buckets,
            <>
              {f.number(sale.buckets)} → <b>{Number.isInteger(wanted) ? f.number(wanted) : '–'}</b>
            </>,
          ],
          [
            t.sale.epoch,
            <>
              {f.number(sale.epoch)} → <b>{f.number(sale.epoch + 1)}</b>
            </>,
          ],
        ]}
      />
      <Standing sale={sale} now={now} />
    </Confirm>
  );
}

type Repaired =
  | { readonly outcome: 'repaired'; readonly unitsLeft: number; readonly tookMs: number }
  | { readonly outcome: 'not_needed' };

function RepairDialog(props: Props) {
  const { sale, now } = props;
  const { api } = useApp();
  const { t, f } = useWords();
  const [force, setForce] = useState(false);
  const run = async (): Promise<string> => {
    const answer = await api.ask<Repaired>(`/admin/v1/sales/${sale.saleId}/repair`, {
      method: 'POST',
      body: { force },
    });
    return answer.outcome === 'repaired'
      ? t.sale.done.repaired(f.number(answer.unitsLeft), f.duration(answer.tookMs))
      : t.sale.done.not_needed;
  };
  return (
    <Confirm {...useAsked(props)} isDangerous run={run}>
      <Check label={t.sale.force} hint={t.sale.forceHint} checked={force} onChange={setForce} />
      <Standing sale={sale} now={now} />
    </Confirm>
  );
}
