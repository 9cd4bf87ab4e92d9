#!/bin/sh
# Sends a request to the coordinator, and verifies the answer with curl and openssl alone:
# - the SHA-256 of the received bytes, and the enclave's signature over this hash
# - the signed receipt, which must name this response and this request
# - the provider's record in the public attestation feed, with its signed statements
#
# Exit codes: 0 prints "verified", after the evidence for the hardware (SIMULATED, or CLAIMED by the machine itself); 1 prints
# "FAILED: <check>"; 2 is wrong usage; 3 prints "NO ANSWER: <reason>": no connection, an incomplete download, or an HTTP error.
#
# Certificates of the manufacturer are checked only by inference-verify. packages/verifier/test/answer-cases.ts lists the forgeries
# that this script, inference-verify and the web console must refuse.
#
# Signed bytes of a plain answer: the whole body. Signed bytes of a stream: all bytes before the signature, without SSE comment
# blocks (a line that begins with ":", and the following blank line). The signature of chat and completions streams is an event.
# The signature of Messages and Responses streams is a comment block, ": inference-signature {...}".
set -u
LC_ALL=C
export LC_ALL
umask 077

usage() {
  cat >&2 <<'USAGE'
usage: scripts/verify-response.sh [options]
  --base-url URL   address of the service (default: from $DATA_DIR/demo.json)
  --key KEY        API key (default: from $DATA_DIR/demo.json)
  --model M        model to ask (default: from demo.json, else the first in the model list that the endpoint is for)
  --data JSON      whole request body, instead of a short question
  --path PATH      endpoint (default: /v1/chat/completions)
  --stream         ask for a streamed answer
  --weights-sha256 HASH  require that the receipt names these weights
  --nonce          send a random nonce and require it in the receipt
  --save DIR       keep request, headers, body and attestation feed in DIR
  --from DIR       verify what --save kept, without any network
  --flip-byte      change one bit of the body first, to see the verification fail
  --require LEVEL  self_signed: refuse simulated machines; hardware: refused here, as only inference-verify checks certificates
USAGE
  exit 2
}

base_url='' api_key='' model='' data='' path=/v1/chat/completions weights='' stream=no use_nonce=no save='' from='' flip=no required=''
while [ $# -gt 0 ]; do
  case $1 in
    --base-url | --key | --model | --data | --path | --save | --from | --weights-sha256 | --require)
      [ $# -ge 2 ] || usage
      case $1 in
        --base-url) base_url=$2 ;;
        --key) api_key=$2 ;;
        --model) model=$2 ;;
        --data) data=$2 ;;
        --path) path=$2 ;;
        --save) save=$2 ;;
        --from) from=$2 ;;
        --weights-sha256) weights=$2 ;;
        --require) required=$2 ;;
      esac
      shift 2
      ;;
    --stream) stream=yes && shift ;;
    --nonce) use_nonce=yes && shift ;;
    --flip-byte) flip=yes && shift ;;
    *) usage ;;
  esac
done
case $required in '' | self_signed | hardware) ;; *) usage ;; esac

scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
  echo "FAILED: $1"
  exit 1
}
no_answer() {
  echo "NO ANSWER: $1"
  exit 3
}
note() { echo "  $1"; }

# download WHAT URL CURL-OPTION...: downloads with curl. Exits the script without a complete response.
download() {
  what=$1 url=$2
  shift 2
  curl -sS --connect-timeout 10 "$@" "$url"
  result=$?
  case $result in
    0) return ;;
    5 | 6 | 7 | 35 | 60) no_answer "could not connect to $base_url" ;;
    18 | 56) no_answer "$what: the connection closed early" ;;
    28) no_answer "$what: timed out" ;;
    *) no_answer "$what: curl ended with exit code $result" ;;
  esac
}

# member LINE NAME: prints the first string member of this name in a line of JSON.
# Uses shell built-ins only, as most functions below: a process per value would add seconds.
member() {
  case $1 in *"\"$2\""*) rest=${1#*"\"$2\""} ;; *) return ;; esac
  rest=${rest#"${rest%%[! ]*}"}
  case $rest in :*) rest=${rest#:} ;; *) return ;; esac
  rest=${rest#"${rest%%[! ]*}"}
  case $rest in \"*\"*) rest=${rest#\"} && printf '%s\n' "${rest%%\"*}" ;; esac
}

newline='
'

# find_last LINES TEXT: sets "found" to the rest of the last line that begins with TEXT.
# Call only in subshells, because word splitting is changed.
find_last() {
  set -f
  IFS=$newline
  found=''
  for line in $1; do case $line in "$2"*) found=${line#"$2"} ;; esac; done
}

# header NAME: prints the value of the last response header of this name (in lower case).
header() { find_last "$headers" "$1:" && printf '%s\n' "$found"; }

# sha256 FILE...: prints the hashes of files, one per line. One process for all files, because openssl starts slowly.
sha256() { openssl dgst -sha256 "$@" | sed 's/.*= //'; }

# size FILE: prints the number of bytes of a file.
size() { echo $(($(wc -c <"$1"))); }

# canonical TEXT: whether a text is canonical base64 (RFC 4648 section 3.5: standard alphabet, padded, unused bits zero).
canonical() {
  [ $((${#1} % 4)) = 0 ] || return 1
  case $1 in
    '' | *[!A-Za-z0-9+/=]* | *=*[!=]* | *===) return 1 ;;
    *[AQgw]==) ;;
    *==) return 1 ;;
    *[AEIMQUYcgkosw048]=) ;;
    *=) return 1 ;;
  esac
}

# decode TEXT FILE: decodes canonical base64 into a file.
decode() { canonical "$1" && { printf %s "$1" | fold -w 64 && echo; } | openssl base64 -d >"$2" 2>/dev/null && [ -s "$2" ]; }

# statement KIND PAYLOAD SIGNATURE FILE: verifies a signed statement, and prints the payload in the form of "lines 1".
statement() {
  decode "$2" "$4.json" && decode "$3" "$4.der" && { printf 'inference/%s/v1\000' "$1" && cat "$4.json"; } |
    openssl dgst -sha256 -verify "$scratch/key.pem" -signature "$4.der" >/dev/null 2>&1 &&
    lines 1 <"$4.json"
}

# milliseconds TEXT: whether a text is a non-negative integer of at most 15 digits.
milliseconds() { case $1 in '' | *[!0-9]* | ????????????????*) return 1 ;; esac; }

# standard_base64 TEXT: converts unpadded base64url to standard base64.
standard_base64() {
  text=$(printf %s "$1" | tr '_-' '/+')
  case $((${#text} % 4)) in 2) text="$text==" ;; 3) text="$text=" ;; esac
  printf %s "$text"
}

# lines DEPTH <JSON: removes white space outside strings, and puts each member down to DEPTH on its own line.
lines() { awk -v deepest="$1" -v RS='"' '
  { gsub(/[\n\r]/, "") }
  text {
    printf "\"%s", $0
    for (k = 0; substr($0, length($0) - k, 1) == "\\"; k++);
    # A quotation mark after an odd number of backslashes is part of the string.
    if (k % 2 == 0) { text = 0; printf "\"" }
    next
  }
  {
    for (i = 1; i <= length($0); i++) {
      char = substr($0, i, 1)
      if (char == " " || char == "\t") continue
      if (char == "}" || char == "]") { if (depth <= deepest) printf "\n"; depth-- }
      printf "%s", char
      if (char == "{" || char == "[") depth++
      if ((char == "{" || char == "[" || char == ",") && depth <= deepest) printf "\n"
    }
    text = 1
  }
  END { printf "\n" }'; }

# field LINES NAME: prints the JSON value of the last member of this name in the output of "lines".
field() { find_last "$1" "\"$2\":" && printf '%s\n' "${found%,}"; }

# text_field LINES NAME: as "field", for a string, without its quotation marks.
text_field() {
  find_last "$1" "\"$2\":"
  found=${found%,}
  case $found in \"*\") found=${found#\"} && printf '%s\n' "${found%\"}" ;; esac
}

# once LINE TEXT: whether TEXT occurs exactly once in a line.
once() { case $1 in *"$2"*"$2"*) return 1 ;; *"$2"*) ;; *) return 1 ;; esac; }

# raw LINE NAME: prints the JSON text of the first member of this name, a number or a string without commas.
raw() { case $1 in *"\"$2\":"*) rest=${1#*"\"$2\":"} && printf '%s\n' "${rest%%[,\}]*}" ;; esac; }

# image_members NAME <BODY: prints the string members of this name in a response of the images endpoint, one per line.
image_members() { lines 2 | grep -o "^{\"$1\":\"[^\"]*\"" | sed 's/^{"[^"]*":"//; s/"$//'; }

# ---- the answer: requested now, or saved earlier

if [ -n "$from" ]; then
  work=$from
  for file in request.json path.txt headers.txt body.bin attestation.json; do
    [ -f "$work/$file" ] || { echo "there is no $file in $work" >&2 && exit 2; }
  done
else
  work=$scratch/answer
  [ -z "$save" ] || work=$save
  mkdir -p "$work" || exit 2
  case $path in
    /v1/images/generations) type=image ;;
    /v1/embeddings) type=embedding ;;
    *) type=text ;;
  esac
  demo=${DATA_DIR:-.data}/demo.json
  if [ -f "$demo" ]; then
    settings=$(tr -d '\n\r' <"$demo")
    [ -n "$base_url" ] || base_url=$(member "$settings" base_url)
    [ -n "$api_key" ] || api_key=$(member "$settings" api_key)
    [ -n "$model" ] || model=$(member "$settings" "${type}_model")
  fi
  [ -n "$base_url" ] && [ -n "$api_key" ] || { echo "give --base-url and --key, or start the demo first ($demo)" >&2 && usage; }
  base_url=${base_url%/}
  # In a file, because other users can see the arguments of a process.
  printf 'Authorization: Bearer %s\nContent-Type: application/json\n' "$api_key" >"$scratch/request-headers"

  if [ -z "$data" ]; then
    if [ -z "$model" ]; then
      download 'model list' "$base_url/v1/models" --max-time 30 -H "@$scratch/request-headers" -o "$scratch/models.json"
      # The object with `model_type` follows the object with the model's id.
      entry=$(tr -d '\n\r' <"$scratch/models.json" | tr '{' '\n' | awk -v type="\"$type\"" '/^ *"id"/ { entry = $0 }
        /"model_type"/ && index($0, type) { print entry; exit }')
      model=$(member "$entry" id)
      [ -n "$model" ] || no_answer "no $type model is available"
    fi
    case $path in
      /v1/completions) data="{\"model\":\"$model\",\"prompt\":\"Once upon a time\",\"max_tokens\":32}" ;;
      /v1/responses) data="{\"model\":\"$model\",\"input\":\"Say hello.\",\"max_output_tokens\":32}" ;;
      /v1/images/generations) data="{\"model\":\"$model\",\"prompt\":\"a red circle on a blue background\",\"size\":\"auto\"}" ;;
      /v1/embeddings) data="{\"model\":\"$model\",\"input\":\"Once upon a time\"}" ;;
      *) data="{\"model\":\"$model\",\"messages\":[{\"role\":\"user\",\"content\":\"Say hello.\"}],\"max_tokens\":32}" ;;
    esac
  fi
  if [ "$stream" = yes ]; then
    case $data in *'"stream"'*) ;; *) data="{\"stream\":true,${data#\{}" ;; esac
  fi
  printf %s "$data" >"$work/request.json"
  printf %s "$path" >"$work/path.txt"
  rm -f "$work/nonce.txt"
  if [ "$use_nonce" = yes ]; then
    openssl rand 32 | openssl base64 | tr -d '\n=' | tr '/+' '_-' >"$work/nonce.txt"
    printf 'X-Inference-Nonce: %s\n' "$(cat "$work/nonce.txt")" >>"$scratch/request-headers"
  fi

  download 'response' "$base_url$path" --max-time 600 -H "@$scratch/request-headers" --data-binary "@$work/request.json" \
    -D "$work/headers.txt" -o "$work/body.bin"
  rm -f "$work"/image-?.bin
  if [ "$path" = /v1/images/generations ]; then
    image_members url <"$work/body.bin" | while read -r url; do
      n=$((${n:-0} + 1))
      download "image $n" "$url" --fail --max-time 120 -o "$work/image-$n.bin"
    done || exit 3
  fi
  download 'attestation feed' "$base_url/v1/providers/attestation" --max-time 30 -o "$work/attestation.json"
fi

# Header names in lower case. The status has the name "HTTP", which cannot clash: header names here are in lower case.
headers=$(awk '/^HTTP\// { print "HTTP:" $2 }
  { at = index($0, ":"); value = substr($0, at + 1); gsub(/^[ \t]+|[ \t\r]+$/, "", value)
    if (at) print tolower(substr($0, 1, at - 1)) ":" value }' "$work/headers.txt")
status=$(header HTTP)
endpoint=$(cat "$work/path.txt")
if [ "$status" != 200 ]; then
  head -c 400 "$work/body.bin" >&2 && echo >&2
  no_answer "HTTP status $status"
fi
streamed=no
case $(header content-type) in text/event-stream*) streamed=yes ;; esac

# ---- --flip-byte

body=$work/body.bin
request=$work/request.json
if [ "$flip" = yes ]; then
  if [ "$streamed" = yes ]; then
    # A byte of the first event, because events are signed and keep-alive comments are not.
    at=$(awk '/^data: / { print at + 8; exit } { at += length($0) + 1 }' "$body")
  else
    at=$(($(wc -c <"$body") / 2))
  fi
  byte=$(od -An -tu1 -j "$at" -N 1 "$body" | tr -d ' ')
  if [ $((byte % 2)) -eq 0 ]; then byte=$((byte + 1)); else byte=$((byte - 1)); fi
  {
    head -c "$at" "$body"
    # shellcheck disable=SC2059 # The format is the byte.
    printf "\\$(printf %03o "$byte")"
    tail -c "+$((at + 2))" "$body"
  } >"$scratch/flipped.bin"
  body=$scratch/flipped.bin
  note "one bit of byte $at of the body was changed"
fi

# ---- the signed bytes, and the proof in headers or signature event

event=''
signed=$body
if [ "$streamed" = yes ]; then
  signed=$scratch/signed.bin
  # SSE parsers also end a line at a lone carriage return, so a comment could hide unsigned events. JSON never contains NUL.
  tr -d '\r\000' <"$body" | cmp -s - "$body" || fail 'stream framing: carriage return or NUL in the stream'
  # The blank line after a comment inside an event would end the event early, and clients would lose its name or first lines.
  awk 'blank && $0 == "" { blank = 0; next } { blank = 0 } /^:/ { if (open) exit 1; blank = 1; next } { open = $0 != "" }' "$body" ||
    fail 'stream framing: a comment inside an event'
  [ -z "$(grep -a '^:' "$body" | tr -d ' -~\n' | od -An -tx1)" ] || fail 'stream framing: a comment that is not printable ASCII'
  at=$(awk '/^data: [{].*"se_signature"/ && /"choices":\[\]/ { at = NR } /^: inference-signature [{]/ { at = NR } END { print at }' "$body")
  [ -n "$at" ] || fail 'signature event: the stream has none'
  event=$(sed -n "${at}p" "$body")
  case $event in *\\*) fail 'signature event: it has escapes' ;; esac
  # Control characters, and characters that some parsers treat as line ends (U+0080 to U+009F, U+2028, U+2029).
  if printf %s "$event" | LC_ALL=C grep -aqE "$(printf '[\001-\037\177]|\302[\200-\237]|\342\200[\250\251]')"; then
    fail 'signature event: it has control characters or line breaks'
  fi
  once "$event" '"se_signature"' || fail 'signature event: a member is there twice'
  outside() { awk -v at="$at" "blank && \$0 == \"\" { blank = 0; next } { blank = 0 } /^:/ { blank = 1; next } NR $1 at { print }" "$body"; }
  outside '<' >"$signed"
  outside '>' >"$scratch/tail"
  case $event in
    :*) # Clients ignore comments. Only the terminator of the Responses format may follow.
      printf 'data: [DONE]\n\n' | cmp -s - "$scratch/tail" || [ ! -s "$scratch/tail" ] || fail 'signature event: unsigned content follows it'
      ;;
    *) # The event itself is not signed, so it must contain nothing that a client would show or count.
      printf '%s\n' "$event" | awk -F '"' '
        { for (i = 2; i < NF; i += 2) if ($(i + 1) ~ /^ *:/ &&
            $i !~ /^(id|object|created|model|choices|usage|se_signature|response_hash|receipt|receipt_signature)$/) exit 1 }' ||
        fail 'signature event: it has members of other events'
      once "$event" '"choices"' || fail 'signature event: a member is there twice'
      rest=$event
      while [ "$rest" != "${rest#*'"usage"'}" ]; do
        rest=${rest#*'"usage"'}
        case $rest in :null*) ;; *) fail 'signature event: it has unsigned usage' ;; esac
      done
      printf '\ndata: [DONE]\n\n' | cmp -s - "$scratch/tail" || printf '\n' | cmp -s - "$scratch/tail" ||
        fail 'signature event: unsigned content follows it'
      ;;
  esac
  hash=$(member "$event" response_hash)
  signature=$(member "$event" se_signature)
  receipt=$(member "$event" receipt)
  receipt_signature=$(member "$event" receipt_signature)
else
  hash=$(header x-response-hash)
  signature=$(header x-se-signature)
  receipt=$(header x-inference-receipt)
  receipt_signature=$(header x-inference-receipt-signature)
fi
key=$(header x-attestation-se-public-key)

# ---- public key: an uncompressed point of 65 bytes, after the DER prefix of P-256 public keys (RFC 5480)

decode "$key" "$scratch/key.raw" && [ "$(size "$scratch/key.raw")" = 65 ] || fail 'public key: not base64 of an uncompressed P-256 point'
# The first byte must be 4. In base64: "B", then a digit whose first two bits are 0.
case $key in B[A-P]*) ;; *) fail 'public key: not base64 of an uncompressed P-256 point' ;; esac
{
  echo '-----BEGIN PUBLIC KEY-----'
  {
    printf '\060\131\060\023\006\007\052\206\110\316\075\002\001\006\010\052\206\110\316\075\003\001\007\003\102\000'
    cat "$scratch/key.raw"
  } | openssl base64
  echo '-----END PUBLIC KEY-----'
} >"$scratch/key.pem"
hashes=$(sha256 "$scratch/key.raw" "$signed" "$request")
key_hash=${hashes%%"$newline"*}
request_hash=${hashes##*"$newline"}
signed_hash=${hashes#*"$newline"}
signed_hash=${signed_hash%"$newline"*}
provider=$(printf %.32s "$key_hash")

# ---- response hash and its signature

case $hash in *[!0-9a-f]*) hash='' ;; esac
[ "${#hash}" = 64 ] || fail 'response hash: missing or not 64 digits'
[ "$signed_hash" = "$hash" ] || fail 'response hash: the bytes received are not the bytes that were signed'
note "response hash $hash"
case $event in
  data:*)
    first=$(awk '/^data: [{]/ { print; exit }' "$signed")
    for name in id object created model; do
      [ -z "$(raw "$event" $name)" ] || [ "$(raw "$event" $name)" = "$(raw "$first" $name)" ] ||
        fail "signature event: its $name is not that of the events before it"
    done
    ;;
esac
decode "$signature" "$scratch/signature.der" &&
  printf %s "$hash" | openssl dgst -sha256 -verify "$scratch/key.pem" -signature "$scratch/signature.der" >/dev/null 2>&1 ||
  fail 'response signature'
note 'response signature by the enclave key'

# ---- the receipt: signature, members, and agreement with key, response and request

receipt=$(standard_base64 "$receipt")
canonical "$receipt" || fail 'receipt: missing or not base64url'
receipt_lines=$(statement receipt "$receipt" "$receipt_signature" "$scratch/receipt") || fail 'receipt signature'
# Canonical JSON (RFC 8785): no spaces, sorted and unique members, so that every parser reads the same values.
printf %s "$receipt_lines" | tr -d '\n' | cmp -s - "$scratch/receipt.json" || fail 'receipt: not canonical JSON'
receipt_names=$(printf '%s\n' "$receipt_lines" | awk -F '"' '
  /^"[^"]*":/ { if (count++ && (before "") >= ($2 "")) exit bad = 1; before = $2; print $2 }
  END { exit bad }') || fail 'receipt: not canonical JSON'
of_receipt() { text_field "$receipt_lines" "$1"; }
names() { [ "$(of_receipt "$1")" = "$2" ] || fail "receipt: it names another $3"; }
known='completed_at endpoint finish_reason hidden_tokens job_id model overrides provider_id request_sha256 response_sha256 se_key_sha256 started_at usage v'
has_member() { case $newline$receipt_names$newline in *"$newline$1$newline"*) ;; *) return 1 ;; esac; }
for name in $known; do has_member "$name" || fail "receipt: it lacks $name"; done
# `crit` lists members that a verifier must understand (RFC 7515 section 4.1.11).
for name in $(has_member crit && field "$receipt_lines" crit | tr '[],"' '    '); do
  case " $known client_nonce image_sha256 engine weights_sha256 template_sha256 sampling " in *" $name "*) ;; *) fail "receipt: this script does not know $name, which it must" ;; esac
done
# Version 2 names engine, weights, template and sampling; version 1 has none of these members.
has_member engine && version=2 || version=1
[ "$(field "$receipt_lines" v)" = $version ] || fail 'receipt: an unknown version, or members of another one'
for name in weights_sha256 template_sha256 sampling; do
  [ $version = 2 ] || ! has_member $name || fail 'receipt: an unknown version, or members of another one'
done
usage_lines=$(field "$receipt_lines" usage | lines 1)
for name in prompt_tokens completion_tokens total_tokens; do
  milliseconds "$(field "$usage_lines" $name)" || fail "receipt: its usage lacks $name"
done
completed=$(field "$receipt_lines" completed_at)
milliseconds "$completed" || fail 'receipt: completed_at is not a time'
names se_key_sha256 "$key_hash" 'enclave key'
names provider_id "$provider" provider
names response_sha256 "$hash" response
names request_sha256 "$request_hash" request
names endpoint "$endpoint" endpoint
[ ! -f "$work/nonce.txt" ] || names client_nonce "$(cat "$work/nonce.txt")" nonce
[ -z "$(header x-inference-job-id)" ] || names job_id "$(header x-inference-job-id)" job
request_lines=$(lines 1 <"$request" | sed 's|\\/|/|g')
asked=$(text_field "$request_lines" model)
models=$(field "$request_lines" models)
# The member `models` of a request lists fallback models.
[ -n "$models" ] && printf '%s\n' "$models" | lines 1 | sed -n 's/^"\(.*\)",\{0,1\}$/\1/p' | grep -qxF -e "$(of_receipt model)" ||
  { [ -z "$asked" ] || names model "$asked" model; }
case $(of_receipt finish_reason) in
  stop | length | tool_calls) ;;
  cancelled) fail 'receipt: the answer was cancelled before its end' ;;
  *) fail 'receipt: an unknown finish_reason' ;;
esac

# ---- the receipt's token counts: equal to the counts in the answer, and possible for the number of bytes

# An image in the prompt has at most 16384 tokens, and a request at most 20 images. Their names may be escaped.
images="$(sed -e 's/\\\\/\/\//g' -e 's/\\u005[fF]/_/g; s/\\u0061/a/g; s/\\u0065/e/g; s/\\u0066/f/g; s/\\u0067/g/g; s/\\u0069/i/g' \
  -e 's/\\u006[cC]/l/g; s/\\u006[dD]/m/g; s/\\u006[eE]/n/g; s/\\u0070/p/g; s/\\u0072/r/g; s/\\u0074/t/g; s/\\u0075/u/g' "$request" |
  grep -aoE '"(input_)?(image(_url)?|file)"' | head -n 20 | wc -l || true)"
awk -v endpoint="$endpoint" -v stream="$streamed" -v prompt="$(field "$usage_lines" prompt_tokens)" \
  -v completion="$(field "$usage_lines" completion_tokens)" -v total="$(field "$usage_lines" total_tokens)" \
  -v cached="$(field "$usage_lines" cached_tokens)" -v hidden="$(field "$receipt_lines" hidden_tokens)" \
  -v bytes="$(size "$signed")" -v request="$(size "$request")" -v images="$images" '
  # Path of the next value, down to the depth of a usage: usage.prompt_tokens, response.usage.output_tokens
  function path(  at, text) { for (at = 1; at <= depth && at < 5; at++) text = text (at > 1 ? "." : "") (kind[at] == "{" ? key[at] : "[]"); return text }
  function of_usage(text) { return text ~ /^((message|response)\.)?usage$/ }
  function number(text, value,  name, partial) {
    if (endpoint == "/v1/messages/count_tokens") { if (text == "input_tokens" && value != prompt) bad = 1; return }
    if (text !~ /^((message|response)\.)?usage\./) return
    partial = text ~ /^message\./ && endpoint == "/v1/messages"
    name = text; sub(/^((message|response)\.)?usage\./, "", name)
    if (name == "prompt_tokens") { prompts++; if (value != prompt) bad = 1 }
    if (name == "completion_tokens" || (name == "output_tokens" && !partial)) { answers++; if (value != completion) bad = 1 }
    if (name == "output_tokens" && partial) answers++
    if (name == "total_tokens" && value != total) bad = 1
    if (name ~ /_details\.cached_tokens$/ && value != cached + 0) bad = 1
    if (name ~ /_details\.(reasoning|thinking)_tokens$/ && !partial && value != hidden) bad = 1
    if (name == "input_tokens" || (name ~ /^cache_(creation|read)_input_tokens$/ && endpoint == "/v1/messages")) {
      sum += value; if (name == "input_tokens") prompts++; summed = 1 } }
  function structure(text,  at, symbol, rest) {
    if (length(text) > 2000) gsub(/\[[-0-9.eE+, \t]*\]/, "[]", text)
    gsub(/[ \t]/, "", text)
    while (text != "") {
      symbol = substr(text, 1, 1); text = substr(text, 2)
      if (symbol == "{" || symbol == "[") {
        if (symbol == "{" && value_next && of_usage(path())) { objects++; sum = 0; summed = 0 }
        else if (symbol == "[" && value_next && of_usage(path())) bad = 1
        kind[++depth] = symbol; key[depth] = ""; value_next = 0
      } else if (symbol == "}" || symbol == "]") {
        depth--; value_next = 0
        if (summed && of_usage(path())) { if (sum != prompt) bad = 1; summed = 0 }
      } else if (symbol == ":") { if (kind[depth] == "{") { key[depth] = last; value_next = 1; if (depth < 4 && last ~ /\\/) bad = depth == 1 || path() ~ /^(message|response|usage)\./ || bad } }
      else if (symbol == ",") value_next = 0
      else if (value_next) {
        rest = symbol; if (match(text, /^[-0-9.eE+a-z]+/)) { rest = rest substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1) }
        if (rest ~ /^[0-9]+$/) { if (of_usage(path())) bad = 1; else number(path(), rest) }
        else if (rest != "null" && of_usage(path())) bad = 1
        value_next = 0
      }
    } }
  function json(text,  parts, count, at, inside, tail) {
    depth = 0; last = ""; value_next = 0; inside = 0
    count = split(text, parts, "\"")
    for (at = 1; at <= count; at++) {
      if (!inside) { structure(parts[at]); inside = 1; last = ""; continue }
      if (length(last) < 200) last = last parts[at]
      # A quote after an odd number of backslashes is part of the string.
      tail = parts[at]; sub(/^.*[^\\]/, "", tail)
      if (length(tail) % 2) continue
      inside = 0
      if (value_next) { if (of_usage(path()) || (endpoint ~ /count_tokens$/ && path() == "input_tokens")) bad = 1; value_next = 0 }
    } }
  stream == "yes" && /^data:/ { text = text substr($0, 6); next }
  stream == "yes" { if ($0 == "") { json(text); text = "" } next }
  { text = text $0 " " }
  END {
    json(text)
    if (prompts < objects || (answers < objects && endpoint != "/v1/embeddings")) bad = 1
    exit bad || prompt == "" || completion == "" || total != prompt + completion || hidden + 0 > completion + 0 ||
      completion - hidden > bytes + 64 || prompt + 0 > request + 512 + images * 16384 }' "$signed" ||
  fail 'receipt usage: it counts other tokens than the answer reports, or more than is possible'

note 'receipt by the enclave key, for this request and this response'

# ---- engine and weights, as the machine claims them (receipts of version 2)

[ -z "$weights" ] || names weights_sha256 "$weights" 'hash of weights'
engine=$(of_receipt engine)
[ -z "$engine" ] || note "computed by $engine with weights $(of_receipt weights_sha256)"

# ---- images: the receipt contains their hashes, in order

if [ "$streamed" = no ] && [ "$endpoint" = /v1/images/generations ]; then
  : >"$scratch/images"
  image_members b64_json <"$signed" | while read -r image; do
    decode "$image" "$scratch/image" || exit 1
    sha256 "$scratch/image"
  done >"$scratch/images" || fail 'images: one is not base64'
  for image in "$work"/image-[1-9].bin; do
    [ ! -f "$image" ] || sha256 "$image" >>"$scratch/images"
  done
  if [ -s "$scratch/images" ]; then
    [ "$(field "$receipt_lines" image_sha256 | tr -d '[]"')" = "$(tr '\n' ',' <"$scratch/images" | sed 's/,$//')" ] ||
      fail 'receipt: it names another list of images'
    note "the receipt names the $(wc -l <"$scratch/images" | tr -d ' ') image(s) that came"
  else
    note 'not checked: the images behind the URLs; they were not kept'
  fi
fi

# ---- the provider's attestation record: its key, and the statements that the key signed

# Saved evidence is verified as of the signed end of the job.
if [ -n "$from" ]; then moment=$completed; else moment=$(date +%s)000; fi
tolerance=120000
lines 2 <"$work/attestation.json" >"$scratch/feed"
grep -F "\"provider_id\":\"$provider\"" "$scratch/feed" >"$scratch/candidates"
record=''
while IFS= read -r candidate; do
  record=$(printf '%s' "$candidate" | lines 1)
  [ "$(text_field "$record" provider_id)" != "$provider" ] || break
  record=''
done <"$scratch/candidates"
of_record() { field "$record" "$1"; }
if [ "$(of_record se_public_key)" != "\"$key\"" ]; then
  grep -qF "\"se_public_key\":\"$key\"" "$scratch/feed" || fail 'attestation feed: the key is not in it'
  [ -n "$record" ] || fail 'attestation feed: the provider is not in it'
  fail 'attestation feed: the key is not that of the provider'
fi
[ "$(header x-provider-id)" = "$provider" ] || fail 'provider id: it does not derive from the key'

contradicted() { fail "provider record: $1"; }
# signed_member LINES NAME KIND: verifies the statement in a member, and prints its payload in the form of "lines 1".
signed_member() {
  signed=$(field "$1" "$2" | lines 1)
  statement "$3" "$(text_field "$signed" payload)" "$(text_field "$signed" signature)" "$scratch/$3"
}
unsigned() { contradicted "the enclave key did not sign its $1 statement"; }
attestation=$(signed_member "$record" attestation_statement attestation) || unsigned attestation
for name in se_public_key chip_name hardware_model serial_number memory_gb key_protection; do
  [ "$(of_record $name)" = "$(field "$attestation" $name)" ] || contradicted "its attestation states another $name"
done
posture=$(field "$attestation" posture | lines 1)
is_simulated=false
[ "$(of_record key_protection)" != '"software"' ] && [ "$(field "$posture" secure_enclave)" = true ] || is_simulated=true
[ "$(of_record simulated)" = $is_simulated ] || contradicted 'simulated is not what its attestation says'

is_attested=false
challenge=$(of_record last_challenge)
if [ "$challenge" != null ]; then
  transcript=$(printf %s "$challenge" | lines 1)
  signed_challenge=$(signed_member "$transcript" statement challenge) || unsigned challenge
  for name in nonce session_id; do
    [ "$(field "$transcript" $name)" = "$(field "$signed_challenge" $name)" ] || contradicted "its challenge has another $name"
  done
  issued=$(field "$signed_challenge" issued_at)
  milliseconds "$issued" || contradicted 'its challenge has no time'
  age=$((moment - issued))
  # Twenty minutes. Challenges come every five minutes.
  if [ "$age" -le 1200000 ] && [ "$age" -ge -$tolerance ]; then
    posture=$(field "$signed_challenge" posture | lines 1)
    [ "$(field "$posture" sip_enabled) $(field "$posture" secure_boot_enabled)" != 'true true' ] || is_attested=true
  fi
fi
# A provider that misses a challenge is not attested, and keeps its last answer in the record.
[ "$(of_record attested)" != true ] || [ $is_attested = true ] || contradicted 'attested is not what its newest challenge shows'
for name in secure_enclave sip_enabled secure_boot_enabled authenticated_root_enabled; do
  [ "$(of_record $name)" = "$(field "$posture" $name)" ] || contradicted "$name is not what it signed"
done

if [ "$(of_record key_statement)" != null ]; then
  key_statement=$(signed_member "$record" key_statement key) || unsigned key
  of_key() { text_field "$key_statement" "$1"; }
  decode "$(of_key x25519_public_key)" "$scratch/x25519" && [ "$(size "$scratch/x25519")" = 32 ] ||
    contradicted 'its sealing key is not 32 bytes'
  hashes=$(sha256 "$scratch/x25519" "$scratch/attestation.json")
  [ "$(of_key key_id)" = "$(printf %.16s "$hashes")" ] || contradicted 'the key_id of its sealing key is not the hash of the key'
  [ "$(of_key provider_id)" = "$provider" ] || contradicted 'its sealing key is for another provider'
  [ "$(of_key attestation_sha256)" = "${hashes##*"$newline"}" ] || contradicted 'its sealing key is bound to another attestation'
  not_before=$(field "$key_statement" not_before) not_after=$(field "$key_statement" not_after)
  milliseconds "$not_before" && milliseconds "$not_after" && [ $((not_after - not_before)) -gt 0 ] &&
    [ $((not_after - not_before)) -le 3600000 ] || contradicted 'its sealing key is valid for longer than an hour, or never'
  [ "$not_before" -le $((moment + tolerance)) ] || contradicted 'its sealing key is not valid yet'
  [ "$not_after" -ge $((moment - tolerance)) ] || contradicted 'its sealing key has expired'
fi

# borne_out HEADER MEMBER: headers are not signed, so they must equal the record. They have question marks in place of
# characters outside ASCII, one or two for each.
borne_out() {
  value=$(header "$1")
  [ -n "$value" ] || return 0
  [ "$(text_field "$record" "$2" | in_header)" = "$(printf '%s\n' "$value" | in_header)" ] || fail "provider headers: the feed does not bear out $1"
}
# Text with one question mark for each run of question marks and bytes outside printable ASCII.
in_header() { tr -c ' -~\n' '?' | tr -s '?'; }
borne_out x-provider-chip chip_name
borne_out x-provider-model hardware_model
borne_out x-provider-serial serial_number
borne_out x-attestation-device-serial serial_number
[ "$(header x-provider-trust-level)" != hardware ] || borne_out x-provider-trust-level trust_level
borne_out_flag() { [ "$(header "$1")" != true ] || [ "$(of_record "$2")" = true ] || fail "provider headers: the feed does not bear out $1"; }
borne_out_flag x-provider-attested attested
borne_out_flag x-provider-mda-verified mda_verified
stated=$(header x-provider-secure-enclave)
[ -z "$stated" ] || [ "$stated" = "$(of_record secure_enclave)" ] || fail 'provider headers: the feed does not bear out x-provider-secure-enclave'
note "answered by provider $provider ($(header x-provider-chip), trust level $(header x-provider-trust-level))"

# ---- evidence for the machine's hardware

if [ "$(of_record mda_verified)" = true ]; then
  anchor=$(field "$(lines 1 <"$work/attestation.json")" trust_anchor | lines 1)
  [ "$(field "$anchor" simulated)" != true ] || is_simulated=true
fi
if [ $is_simulated = true ]; then
  note 'SIMULATED machine: its key is kept in software, or certified by a test authority. Nothing is proved about its hardware.'
  [ -z "$required" ] || fail "required evidence: the machine is simulated, and --require $required was given"
else
  note 'CLAIMED Secure Enclave: the machine says so of itself; a program could say the same.'
  [ "$(of_record mda_verified)" != true ] ||
    note "the feed has certificates of its manufacturer, which this script does not check: inference-verify response does"
  [ "$required" != hardware ] || fail 'required evidence: this script checks no certificates; use inference-verify response --require hardware'
fi

echo verified
