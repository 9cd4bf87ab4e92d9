/** `DownloadLink`: link that looks like a button and downloads a file from the coordinator. */
import { Download } from 'lucide-react';
import type { ReactNode } from 'react';

interface DownloadLinkProps {
  readonly href: string;
  /** Suggested name of the file. */
  readonly fileName: string;
  readonly size?: 'small' | 'normal';
  readonly children: ReactNode;
}

export function DownloadLink({ href, fileName, size = 'normal', children }: DownloadLinkProps) {
  return (
    <a className="button" data-kind="secondary" data-size={size} href={href} download={fileName}>
      <Download size={18} aria-hidden="true" />
      <span className="button-text">{children}</span>
    </a>
  );
}
