import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { apiErrorOf, type ApiError } from '../api/api-error.js';
import type { RefundCounts, Sale, VoidStep } from '../api/types.js';
import { queryOf } from '../logic/query.js';
import { pathOf } from '../logic/routes.js';
import { NOTHING_VOIDED, ordersIn, takeVoidSteps, type Voided } from '../logic/void-steps.js';
import { Button, Facts, Link, Panel } from '../parts/basics.js';
import { Dialog } from '../parts/dialog.js';
import { Segments, TextField } from '../parts/fields.js';
import { Failure, Freshness, Loading, Note, ProblemText } from '../parts/states.js';
import { useApp, useWords, type Resource } from '../shell/hooks.js';

export const VOID_CHOICES = ['unpaid', 'all'] as const;
export type VoidChoice = (typeof VOID_CHOICES)[number];

type State =
  /** `found`: the count so far. */
  | { readonly is: 'looking'; readonly found: Voided }
  | { readonly is: 'failed'; readonly error: ApiError }
  | { readonly is: 'asked'; readonly found: Voided }
  | { readonly is: 'running'; readonly found: Voided; readonly voided: Voided }
  | { readonly is: 'stopped'; readonly found: Voided; readonly voided: Voided; readonly error: ApiError | null }
  /** `left`: the result of the final count. Null if the count failed. */
  | { readonly is: 'ended'; readonly voided: Voided; readonly left: Voided | null };

/**
 * Voids a sale: counts its orders first, then runs step after step. An interrupted step can safely be repeated, so the
 * dialog may be closed, or its page reloaded, at any time: the next void continues with the remaining orders.
 */
export function VoidDialog({
  sale,
  choice,
  pending,
  onChoose,
  onClose,
  onDone,
}: {
  readonly sale: Sale;
  readonly choice: VoidChoice;
  /** Batches that are not recorded yet. */
  readonly pending: number;
  readonly onChoose: (choice: VoidChoice) => void;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api } = useApp();
  const { t, f } = useWords();
  const words = t.till.void;
  const [state, setState] = useState<State>({ is: 'looking', found: NOTHING_VOIDED });
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [looks, setLooks] = useState(0);
  const look = (): void => setLooks(looks + 1);
  const isStopped = useRef(false);
  const isRunning = useRef(false);
  const refundAll = choice === 'all';
  const take = (body: object, from: Voided, onStep: (voided: Voided) => void, isOver: () => boolean): Promise<Voided> =>
    takeVoidSteps(
      (after) =>
        api.ask<VoidStep>(`/admin/v1/sales/${sale.saleId}/void`, {
          method: 'POST',
          body: { unpaid: true, refundAll, ...body, ...(after !== null && { after }) },
        }),
      from,
      onStep,
      isOver,
    );
  const count = (isOver: () => boolean, onStep: (found: Voided) => void): Promise<Voided> =>
    take({ dryRun: true, reason: 'dry run' }, NOTHING_VOIDED, onStep, isOver);

  useEffect(() => {
    let isOver = false; // the choice was changed, or the dialog was closed
    const show = (next: State): void => void (!isOver && setState(next));
    const looking = (found: Voided): void => show({ is: 'looking', found });
    looking(NOTHING_VOIDED);
    count(() => isOver, looking).then(
      (found) => show({ is: 'asked', found }),
      (error: unknown) => show({ is: 'failed', error: apiErrorOf(error) }),
    );
    return () => {
      isOver = true;
    };
  }, [choice, looks]);
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );

  const recount = (): Promise<Voided | null> =>
    count(
      () => false,
      () => undefined,
    ).catch(() => null);

  const run = async (found: Voided, from: Voided): Promise<void> => {
    if (isRunning.current) return; // a second click may come before the button is disabled
    isRunning.current = true;
    isStopped.current = false;
    let voided = from;
    setState({ is: 'running', found, voided });
    const onStep = (sum: Voided): void => {
      voided = sum;
      setState({ is: 'running', found, voided });
    };
    try {
      await take({ reason }, from, onStep, () => isStopped.current);
      if (voided.after === null) setState({ is: 'ended', voided, left: await recount() });
      else setState({ is: 'stopped', found, voided, error: null });
    } catch (error) {
      setState({ is: 'stopped', found, voided, error: apiErrorOf(error) });
    }
    isRunning.current = false;
    onDone();
  };

  const foot: ComponentChildren =
    state.is === 'running' ? (
      <Button onClick={() => (isStopped.current = true)}>{words.stop}</Button>
    ) : (
      <>
        <Button onClick={onClose}>{t.common.close}</Button>
        {state.is === 'asked' && (
          <Button
            kind="danger"
            disabled={ordersIn(state.found) === 0 || reason.trim() === '' || typed.trim() !== sale.saleId}
            onClick={() => void run(state.found, NOTHING_VOIDED)}
          >
            {words.verb}
          </Button>
        )}
        {state.is === 'stopped' && (
          <Button kind="danger" onClick={() => void run(state.found, state.voided)}>
            {words.goOn}
          </Button>
        )}
        {state.is === 'ended' && (
          <>
            <Link to={pathOf({ screen: 'audit' }) + queryOf({ subject: `sale:${sale.saleId}` })}>
              {t.common.seeAudit}
            </Link>
            <Button onClick={look}>{words.countAgain}</Button>
          </>
        )}
      </>
    );
  return (
    <Dialog
      title={`${t.sale.actions.void}: ${sale.title}`}
      onClose={onClose}
      isFinal={state.is === 'running'}
      foot={foot}
    >
      {state.is !== 'ended' && <p>{words.text}</p>}
      {state.is === 'looking' && (
        <>
          <Sums sale={sale} voided={state.found} refundAll={refundAll} labels={t.till.void.found} />
          <Loading rows={2} />
        </>
      )}
      {state.is === 'failed' && <Failure error={state.error} onRetry={look} />}
      {state.is === 'asked' && (
        <>
          <Segments
            label={words.which}
            value={choice}
            options={VOID_CHOICES.map((one) => [one, t.till.void.choices[one]] as const)}
            onPick={onChoose}
          />
          <Sums sale={sale} voided={state.found} refundAll={refundAll} labels={t.till.void.found} />
          {ordersIn(state.found) === 0 ? (
            <Note tone="info">{words.nothing}</Note>
          ) : (
            <>
              <TextField label={t.common.reason} value={reason} onInput={setReason} hint={t.till.reasonHint} />
              <TextField label={t.sale.confirmName(sale.saleId)} value={typed} onInput={setTyped} />
            </>
          )}
        </>
      )}
      {(state.is === 'running' || state.is === 'stopped') && (
        <>
          <progress
            max={Math.max(1, ordersIn(state.found))}
            value={ordersIn(state.voided)}
            aria-label={t.sale.actions.void}
          />
          <p class="number" role="status">
            {words.progress(f.number(ordersIn(state.voided)), f.number(ordersIn(state.found)))}
          </p>
          <Sums sale={sale} voided={state.voided} refundAll={refundAll} labels={t.till.void.done} />
        </>
      )}
      {state.is === 'stopped' && (
        <Note tone={state.error === null ? 'warn' : 'bad'}>
          {state.error === null ? words.stopped : <ProblemText error={state.error} isAction />}
        </Note>
      )}
      {state.is === 'ended' && (
        <div role="status">
          <Note tone="ok">{words.ended}</Note>
          <Sums sale={sale} voided={state.voided} refundAll={refundAll} labels={t.till.void.done} />
          {state.left === null ? (
            <Note tone="warn">{words.leftUnknown}</Note>
          ) : (
            ordersIn(state.left) > 0 && <Note tone="warn">{words.left(f.number(ordersIn(state.left)))}</Note>
          )}
          {pending > 0 && <Note tone="warn">{words.pending(f.number(pending))}</Note>}
          <p class="hint">{words.passedOver}</p>
        </div>
      )}
    </Dialog>
  );
}

function Sums({
  sale,
  voided,
  refundAll,
  labels,
}: {
  readonly sale: Sale;
  readonly voided: Voided;
  readonly refundAll: boolean;
  readonly labels: { readonly unpaid: string; readonly paid: string; readonly money: string };
}) {
  const { f } = useWords();
  return (
    <Facts
      facts={[
        [labels.unpaid, f.number(voided.cancelled)],
        ...(refundAll
          ? [
              [labels.paid, f.number(voided.refunding)] as const,
              [labels.money, <b>{f.money(voided.refundCents, sale.currency)}</b>] as const,
            ]
          : []),
      ]}
    />
  );
}

/** Shows the progress of the refunds of a sale. Shows nothing if there are none. */
export function SaleRefunds({ sale, counts }: { readonly sale: Sale; readonly counts: Resource<RefundCounts> }) {
  const { t, f } = useWords();
  if (counts.data === null || counts.data.states.length === 0) return null;
  const { states } = counts.data;
  const all = states.reduce((sum, { refunds }) => sum + refunds, 0);
  const done = states.find(({ state }) => state === 'refunded')?.refunds ?? 0;
  return (
    <Panel title={t.refunds.title} actions={<Freshness {...counts} />}>
      <progress max={all} value={done} aria-label={t.refunds.title} />
      <Facts
        facts={states.map(({ state, refunds, amountCents }) => [
          t.refunds.states[state],
          <>
            <Link to={pathOf({ screen: 'refunds' }) + queryOf({ sale: sale.saleId, state })}>
              {f.number(refunds)} · {f.money(amountCents, sale.currency)}
            </Link>
            {state !== 'refunded' && <p class="hint">{t.till.void.why[state]}</p>}
          </>,
        ])}
      />
    </Panel>
  );
}
