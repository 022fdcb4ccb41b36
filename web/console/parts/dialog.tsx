import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useWords } from '../shell/hooks.js';
import { IconButton } from './basics.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly foot?: ComponentChildren;
  /** `side`: beside the list that the dialog was opened from. */
  readonly shape?: 'middle' | 'wide' | 'side';
  /** The user cannot leave the dialog: only the requested answer closes it. */
  readonly isFinal?: boolean;
}

/** Covers the screen until it is closed. The browser keeps the focus inside, and returns the focus afterwards. */
export function Dialog({ title, onClose, children, foot, shape = 'middle', isFinal = false }: DialogProps) {
  const { t } = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog ${shape}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault(); // the Escape key: the component that opened the dialog removes it
        if (!isFinal) onClose();
      }}
      onClose={() => {
        if (dialog.current === null) return; // the dialog was removed, and is closed
        // Chromium asks only once: a second Escape in a row closes the dialog even if a listener prevents it.
        if (isFinal) dialog.current.showModal();
        else onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current && !isFinal) onClose(); // a click beside the dialog
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2>{title}</h2>
          {!isFinal && <IconButton icon="close" label={t.common.close} onClick={onClose} />}
        </header>
        <div class="dialog-body">{children}</div>
        {foot && <footer class="dialog-foot">{foot}</footer>}
      </div>
    </dialog>
  );
}
