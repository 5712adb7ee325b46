/** A command to type, with a button that copies it: the page itself changes nothing. */
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'

const SHOWN_MS = 1500

export function Command({ command, text }: { command: string; text?: string }): JSX.Element {
  const isCopied = useSignal(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(command)
    isCopied.value = true
    setTimeout(() => (isCopied.value = false), SHOWN_MS)
  }
  return (
    <span class="command">
      <code title={command}>
        <span class="prompt" aria-hidden="true">
          ${' '}
        </span>
        {command}
      </code>
      <button
        type="button"
        class="copy"
        aria-label={isCopied.value ? 'Copied' : `Copy ${command}`}
        title={text === undefined ? 'Copy' : `Copy: ${text}`}
        onClick={() => void copy().catch(() => undefined)}
      >
        <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" focusable="false">
          {isCopied.value ? (
            <path d="M1.8 6.4 4.8 9.4 10.4 2.8" fill="none" stroke="currentColor" stroke-width="1.6" />
          ) : (
            <path
              d="M4.2 4.2V1.5h6.3v6.3H7.8M1.5 4.2h6.3v6.3H1.5z"
              fill="none"
              stroke="currentColor"
              stroke-width="1.1"
            />
          )}
        </svg>
      </button>
    </span>
  )
}
