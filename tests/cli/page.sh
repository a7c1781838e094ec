# Pages of real runs in headless Chromium: what page.py looks for is not there, and is found where it was planted.
source "$(dirname "$0")/helpers.bash"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "skipped: no Chromium is here (Debian's package chromium), so nobody opened the page"; exit 77; }
look() { timeout $((120 * scale)) python3 "$(dirname "$0")/page.py" "$chromium" "$@" >"$out" 2>"$err"; }

expect 0 taxes --backend host --operator all_gather_gemm --ranks 2 -m 8 -n 16 -k 24 --repeat 2 \
  --trace "$folder/trace.json" --html "$folder/measured.html"
grep -q 'class="timeline' "$folder/measured.html" || wrong "a traced run's page has no timeline"
expect 0 taxes --model models/llama-3.1-70b.json --tokens 16 --machine machines/h200-8.json --html "$folder/predicted.html"
pictures=${PAGE_PICTURES:--}  # a folder, for who wants to look at them
look "$pictures" "$folder/measured.html" "$folder/predicted.html" || wrong "the page is not as it should be"
cat "$out"

# planted COMPLAINT HTML: a page that ends with this HTML is complained of.
pages=()
complaints=()
planted() {
  local page=$folder/planted-${#pages[@]}.html
  cat "$folder/measured.html" >"$page"
  echo "$2" >>"$page"
  pages+=("$page")
  complaints+=("$1")
}
planted 'a message in the console' '<script>console.error("no")</script>'
planted 'an error: .*nothing' '<script>nothing()</script>'
planted 'a request to file:///nowhere.png' '<img alt="" src="file:///nowhere.png">'
planted '400 pixels.*a horizontal scroll bar' '<div style="width: 900px">wide</div>'
planted 'the words differ from' '<script>document.body.append("only with scripts")</script>'
planted 'light and dark are both' '<style>body { background: #fff !important }</style>'
planted 'should be less than' "<!-- $(head -c 2000000 /dev/zero | tr '\0' x) -->"
look - "${pages[@]}" && wrong "nothing planted was found"
for i in "${!pages[@]}"; do says "$out" "^planted-$i.html: .*${complaints[i]}"; done
tests=$((tests + 1 + ${#pages[@]}))
finish
