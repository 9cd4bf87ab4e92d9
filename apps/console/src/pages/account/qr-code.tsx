/** `QrCode`: QR code as SVG. Loaded separately, because only one dialog shows it. */
import encodeQR from 'qr';

/** Width of the quiet zone, which scanners need, in modules (ISO/IEC 18004). */
const BORDER = 4;

export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const rows = encodeQR(text, 'raw', { border: BORDER });
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  return (
    <svg className="qr-code" role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`} shapeRendering="crispEdges">
      <rect width="100%" height="100%" fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
